"""What a decoder may look at while it writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from attnlab.model.attention.draws import Draws
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.patch import Patch, Places

RecordT = TypeVar("RecordT", bound=Any)


@dataclass(frozen=True)
class Memory:
    """The encoded source; a decoder reads it and never changes it.

    summary is the top layer's final state, the one context vector of models without attention. keys
    and values have a further axis N where the attention has several heads; they are None without
    attention. mask is None where the attention may weigh pads. positions count the tokens that the
    attention may look at from 0 on; all others come behind the last of them. source_positions count
    all real tokens, as an intervention names them, and are None where that is the same.
    intervention changes the weights; None leaves them as they are. source has the tokens
    themselves, for an output that copies them. of_blocks has the memory of each block of a decoder
    whose blocks attend. projected_values are the values as `Readout.at_each` reads them, for an
    output that asks it. draws records what the attentions draw; None where nobody learns from it.
    """

    summary: Tensor  # (B, D)
    keys: Tensor | None  # (B, S, A), or (B, N, S, A)
    values: Tensor | None  # (B, S, D), or (B, N, S, D / N)
    mask: Tensor | None  # (B, S) bool
    positions: Tensor  # (B, S) long
    lengths: Tensor  # (B,) long
    intervention: Intervention | None = None
    source: Tensor | None = None  # (B, S) long
    of_blocks: tuple[Memory, ...] = ()
    projected_values: Tensor | None = None  # (B, S, P)
    draws: Draws | None = None
    source_positions: Tensor | None = None  # (B, S) long

    @property
    def named_positions(self) -> Tensor:
        """(B, S) long: what an intervention calls each token."""
        return self.positions if self.source_positions is None else self.source_positions

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows of the batch, in their order; a row may be named twice."""
        selected = rows_of(self, rows)
        if not self.of_blocks:
            return selected
        return replace(selected, of_blocks=tuple(each.select(rows) for each in self.of_blocks))

    def under(self, intervention: Intervention) -> Memory:
        """The memory with an intervention, without what this hides.

        What goes for some of several heads alone waits for `head`.
        """
        mask = self.mask
        has_heads = self.keys is not None and self.keys.dim() == 4
        if not has_heads:
            intervention = replace(intervention, heads=None)
        if intervention.hide and intervention.heads is None:
            shown = intervention.shown(self.named_positions)
            mask = shown if mask is None else mask & shown
        of_blocks = tuple(each.under(intervention) for each in self.of_blocks)
        return replace(self, mask=mask, intervention=intervention, of_blocks=of_blocks)

    def recorded_by(self, draws: Draws | None) -> Memory:
        """The memory whose attentions note in `draws` what they draw."""
        of_blocks = tuple(each.recorded_by(draws) for each in self.of_blocks)
        return replace(self, draws=draws, of_blocks=of_blocks)

    def patched(self, patch: Patch, other: Memory) -> Memory:
        """The memory with the keys and values that a patch takes from another sentence.

        other: the memory of that sentence, of one row.
        """
        return replace(
            self,
            keys=_exchanged(patch.keys, self.keys, other.keys, self, other),
            values=_exchanged(patch.values, self.values, other.values, self, other),
        )

    def for_rows(self, count: int) -> Memory:
        """Every row as often as it takes to have so many, its copies side by side."""
        rows = torch.arange(len(self.lengths), device=self.lengths.device)
        return (
            self if count == len(rows) else self.select(rows.repeat_interleave(count // len(rows)))
        )

    def head(self, number: int) -> Memory:
        """What one of several heads looks at."""
        assert self.keys is not None
        assert self.values is not None
        own = replace(self, keys=self.keys[:, number], values=self.values[:, number])
        change = self.intervention
        if change is None or change.heads is None:
            return own
        if number in change.heads:
            return own.under(change)
        return replace(own, intervention=None)


def rows_of(record: RecordT, rows: Tensor) -> RecordT:
    """A dataclass with some rows of each of its tensors, whose first axis is the batch."""
    return replace(
        record, **{name: x[rows] for name, x in vars(record).items() if isinstance(x, Tensor)}
    )


def count_positions(mask: Tensor) -> Tensor:
    """Positions of a mask (B, S): 0, 1, ... over the real tokens, then on over the pads.

    Wherever the pads stand. The result is (B, S) long.
    """
    behind = mask.sum(1, keepdim=True) + (~mask).cumsum(1) - 1
    return torch.where(mask, mask.cumsum(1) - 1, behind)


def _exchanged(
    places: Places, own: Tensor | None, others: Tensor | None, memory: Memory, other: Memory
) -> Tensor:
    """Vectors (B, S, A) or (B, N, S, A) with others (1, ..., S', A) at some places."""
    assert own is not None
    assert others is not None
    length = other.named_positions.shape[1]  # one sentence has no pads
    pairs = {place: place for place in range(length)} if places == "all" else places
    for here, there in pairs.items():
        column = int((other.named_positions[0] == there).nonzero()[0])
        taken = others.select(-2, column).unsqueeze(-2)  # (1, 1, A) or (1, N, 1, A)
        is_here = (memory.named_positions == here).unsqueeze(-1)  # (B, S, 1)
        if own.dim() == 4:
            is_here = is_here.unsqueeze(1)
        own = torch.where(is_here, taken, own)
    return own
