"""Self-attention, the feed-forward network, and the sum and norm around each.

Axes: B batch, T length, E width, N heads, d width of a head (E / N).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnlab.batch import PAD
from attnlab.model.dropout import Dropout
from attnlab.model.transformer.positions import Turn

NormPlace = Literal["before", "after"]


class SelfAttention(nn.Module):
    """concat(head_1, ..., head_N) W_O, head_i = softmax(Q_i K_iᵀ / √d) V_i of the same vectors.

    Vaswani et al. 2017, sections 3.2.1 and 3.2.2.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        if size % heads:
            raise ValueError(
                f"the heads share the width, so that embedding_size must be a multiple of "
                f"self_attention_heads, got {size} and {heads}"
            )
        self.heads = heads
        self.head_size = size // heads
        self.W_QKV = nn.Linear(size, 3 * size, bias=False)
        self.W_O = nn.Linear(size, size, bias=False)

    def project(self, x: Tensor, turn: Turn) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors (B, T, E) -> queries and keys, turned, and values, each (B, N, T, d)."""
        query, key, value = self.W_QKV(x).chunk(3, dim=2)
        return turn(self._by_head(query)), turn(self._by_head(key)), self._by_head(value)

    def _by_head(self, x: Tensor) -> Tensor:
        """(B, T, E) -> (B, N, T, d)."""
        return x.unflatten(2, (self.heads, self.head_size)).transpose(1, 2)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None) -> Tensor:
        """Each query's average of the values it may see: (B, T, E).

        seen: bool, over (B, N, T, S) or what broadcasts to it; None where each sees all.
        """
        if query.device.type == "cpu":
            heads = _average_in_float32(query, key, value, seen)
        else:
            heads = scaled_dot_product_attention(query, key, value, attn_mask=seen)
        return self.W_O(heads.transpose(1, 2).flatten(2))


def _average_in_float32(query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None) -> Tensor:
    """As torch's, for autocast too: its gradient takes ten times as long in bfloat16 on a CPU."""
    if not torch.is_autocast_enabled("cpu"):
        return scaled_dot_product_attention(query, key, value, attn_mask=seen)
    with torch.autocast("cpu", enabled=False):
        heads = scaled_dot_product_attention(
            query.float(), key.float(), value.float(), attn_mask=seen
        )
    return heads.to(value.dtype)


class FeedForward(nn.Sequential):
    """max(0, x W_1 + b_1) W_2 + b_2, for each token by itself (Vaswani et al. 2017, equation 2)."""

    def __init__(self, size: int, inner_size: int) -> None:
        super().__init__(nn.Linear(size, inner_size), nn.ReLU(), nn.Linear(inner_size, size))


class Residual(nn.Module):
    """What a sublayer finds is added to what it read, with a layer norm.

    LayerNorm(x + f(x)), the norm `after` the sum (Vaswani et al. 2017, section 3.1), or
    x + f(LayerNorm(x)), the norm `before` the sublayer, which learns without a long warm-up (Xiong
    et al. 2020). Dropout is on f(x). A sublayer f reads what `enter` returns of x, and `leave` adds
    what it found.
    """

    def __init__(self, size: int, place: NormPlace, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.place = place
        self.dropout = Dropout(dropout)

    def enter(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.place == "before" else x

    def leave(self, x: Tensor, found: Tensor) -> Tensor:
        total = x + self.dropout(found)
        return total if self.place == "before" else self.norm(total)


def last_norm(size: int, place: NormPlace) -> nn.Module:
    """What stands behind the last layer: where the norms stand before the sublayers, one more."""
    return nn.LayerNorm(size) if place == "before" else nn.Identity()


def causal(length: int, device: torch.device) -> Tensor:
    """(T, T) bool: each position sees itself and those before it."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def draw_scaled(embedding: nn.Embedding) -> None:
    """Draw an embedding whose vectors are going to be multiplied by √E, as N(0, 1) after it.

    An output layer may share them (Vaswani et al. 2017, section 3.4).
    """
    nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
    with torch.no_grad():
        embedding.weight[PAD].zero_()
