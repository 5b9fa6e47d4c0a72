"""Several attentions at once, each over projections of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.attention import Attention
from attnlab.model.attention.coverage import Coverage
from attnlab.model.attention.memory import Memory
from attnlab.model.repeated_linear import RepeatedLinear


class MultiHeadAttention(nn.Module):
    """concat(head_1, ..., head_N) W_O with head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i) (Vaswani et al. 2017,
    section 3.2.2), for any score that compares contents.

    Args:
        heads: N.
        size: width of the projections of each head.
    """

    def __init__(
        self,
        heads: PositiveInt,
        size: PositiveInt,
        *,
        head: Callable[[int, int], Attention],
        query_size: int,
        value_size: int,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.W_Q = RepeatedLinear(query_size, heads * size, bias=False)
        self.W_K = nn.Linear(value_size, heads * size, bias=False)
        self.W_V = nn.Linear(value_size, heads * size, bias=False)
        self.W_O = RepeatedLinear(heads * size, value_size, bias=False)
        self.attentions = nn.ModuleList(head(size, size) for _ in range(heads))
        if any(attention.score.by_position for attention in self._each()):
            raise ValueError("the location score has no keys that heads could project; choose model/heads=one")

    @property
    def coverage(self) -> Coverage | None:
        """That of the first head: they all have one, or none has."""
        return next(self._each()).coverage

    def project(self, outputs: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Encoder outputs (B, S, D) -> keys (B, N, S, A) and values (B, N, S, size)."""
        keys = self.W_K(outputs).chunk(self.heads, dim=-1)
        values = self.W_V(outputs).chunk(self.heads, dim=-1)
        projected = [attention.project(key, positions)[0] for attention, key in zip(self._each(), keys, strict=True)]
        return torch.stack(projected, dim=1), torch.stack(values, dim=1)

    def forward(
        self, query: Tensor, memory: Memory, t: Tensor, coverage: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `Attention.forward`, with coverage (B, N, S) -> context (B, T, D), attention weights (B, N, T, S)."""
        queries = self.W_Q(query).chunk(self.heads, dim=-1)
        found = [
            attention(queries[i], memory.head(i), t, None if coverage is None else coverage[:, i : i + 1])
            for i, attention in enumerate(self._each())
        ]
        contexts, weights = zip(*found, strict=True)
        return self.W_O(torch.cat(contexts, dim=-1)), torch.cat(weights, dim=1)

    def _each(self) -> Iterator[Attention]:
        for attention in self.attentions:
            assert isinstance(attention, Attention)
            yield attention
