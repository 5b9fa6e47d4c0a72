"""What a decoder may look at while it writes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Memory:
    """The encoded source; a decoder reads it and never changes it.

    summary is the top layer's final state, the one context vector of models without attention.
    keys are None without attention; mask is None where the attention may weigh pads.
    """

    values: Tensor  # (B, S, D)
    summary: Tensor  # (B, D)
    keys: Tensor | None  # (B, S, A)
    mask: Tensor | None  # (B, S)

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows of the batch, in their order, repeated where a row is named twice."""
        return Memory(
            self.values[rows],
            self.summary[rows],
            None if self.keys is None else self.keys[rows],
            None if self.mask is None else self.mask[rows],
        )
