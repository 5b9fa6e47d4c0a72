"""What a decoder may look at while it writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from attnlab.model.attention.attention import Attention
    from attnlab.model.attention.multi_head import MultiHeadAttention
    from attnlab.model.encoder import Encoded


@dataclass(frozen=True)
class Memory:
    """The encoded source; a decoder reads it and never changes it.

    summary is the top layer's final state, the one context vector of models without attention. keys and values have
    a further axis N where the attention has several heads; they are None without attention. mask is None where the
    attention may weigh pads. positions count real tokens from 0 on; pads come behind the last of them.
    """

    summary: Tensor  # (B, D)
    keys: Tensor | None  # (B, S, A), or (B, N, S, A)
    values: Tensor | None  # (B, S, D), or (B, N, S, D / N)
    mask: Tensor | None  # (B, S) bool
    positions: Tensor  # (B, S) long
    lengths: Tensor  # (B,) long

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows of the batch, in their order, repeated where a row is named twice."""
        return Memory(
            self.summary[rows],
            keys=None if self.keys is None else self.keys[rows],
            values=None if self.values is None else self.values[rows],
            mask=None if self.mask is None else self.mask[rows],
            positions=self.positions[rows],
            lengths=self.lengths[rows],
        )

    def head(self, number: int) -> Memory:
        """What one of several heads looks at."""
        assert self.keys is not None
        assert self.values is not None
        return replace(self, keys=self.keys[:, number], values=self.values[:, number])


def remember(
    encoded: Encoded, source_mask: Tensor, masked: bool, attention: Attention | MultiHeadAttention | None
) -> Memory:
    """The memory of a batch, with the keys projected once for all steps.

    Args:
        source_mask: (B, S).
        masked: False lets the attention weigh pads.
        attention: None where nothing attends.
    """
    positions = count_positions(source_mask)
    # A masked pad may stand beyond the longest source; its position is never looked at.
    seen = positions.masked_fill(~source_mask, 0) if masked else positions
    keys, values = (None, None) if attention is None else attention.project(encoded.outputs, seen)
    return Memory(
        summary=encoded.final.hidden[-1],
        keys=keys,
        values=values,
        mask=source_mask if masked else None,
        positions=positions,
        lengths=source_mask.sum(1),
    )


def count_positions(mask: Tensor) -> Tensor:
    """mask (B, S) -> (B, S) long: 0, 1, ... over the real tokens, and then on over the pads, wherever they stand."""
    behind = mask.sum(1, keepdim=True) + (~mask).cumsum(1) - 1
    return torch.where(mask, mask.cumsum(1) - 1, behind)
