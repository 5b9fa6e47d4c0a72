"""What a decoder carries from step to step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attnlab.model.recurrent_state import RecurrentState


@dataclass(frozen=True)
class DecoderState:
    """The recurrent state, and what the chosen mechanism remembers beside it (None where it needs it not)."""

    recurrent: RecurrentState
    position: Tensor  # (B,) long: the target position of the next step, counted over real tokens
    context: Tensor | None = None  # (B, D): c_{t-1}
    fed: Tensor | None = None  # (B, F): what the last step feeds to the next
    coverage: Tensor | None = None  # (B, N, S): the sum of all attention weights so far

    def select(self, rows: Tensor) -> DecoderState:
        """The state of some rows of the batch, in their order, repeated where a row is named twice."""
        return DecoderState(
            self.recurrent.select(rows),
            self.position[rows],
            context=None if self.context is None else self.context[rows],
            fed=None if self.fed is None else self.fed[rows],
            coverage=None if self.coverage is None else self.coverage[rows],
        )
