"""What a decoder step reads and what it returns: the last token, the state and the output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

from torch import Tensor

from attnlab.model.attention.memory import rows_of
from attnlab.model.histories.history import Remembered
from attnlab.model.recurrence import RecurrentState


class SelectsRows(Protocol):
    """A record of one step."""

    def select(self, rows: Tensor) -> Self:
        """The record of some rows of the batch, in their order; a row may be named twice."""


@dataclass(frozen=True)
class DecoderState:
    """What a decoder carries from step to step.

    A decoder of one's own may derive a record with further fields from it: tensors whose first axis
    is the batch, so that the searches can select hypotheses. Its `first_state` fills them.
    """

    recurrent: RecurrentState
    position: Tensor  # (B,) long: the target position of the next step, counted over real tokens
    context: Tensor | None = None  # (B, D): c_{t-1}
    fed: Tensor | None = None  # (B, F): what the last step feeds to the next
    past: tuple[Remembered, ...] | None = None  # what each head of the attention remembers
    last_reading: SelectsRows | None = None  # what the output read of the last step, if it asks

    def select(self, rows: Tensor) -> DecoderState:
        """The state of some rows of the batch, in their order; a row may be named twice."""
        selected = replace(rows_of(self, rows), recurrent=self.recurrent.select(rows))
        if self.last_reading is not None:
            selected = replace(selected, last_reading=self.last_reading.select(rows))
        if self.past is None:
            return selected
        return replace(selected, past=tuple(head.select(rows) for head in self.past))


@dataclass(frozen=True)
class Token:
    """The last token as a step reads it.

    `fast/decoder.py` extends it by a product that is made of all known tokens before the loop.
    """

    embedded: Tensor  # (B, E), after dropout


@dataclass(frozen=True)
class StepOutput:
    """The result of a step: what the readout reads, and where the attention looked.

    context is None where it does not go into the readout, attention_weights without an attention.
    All steps at once have a further axis T: (B, T, H), and (B, N, T, S) of the weights.
    """

    hidden: Tensor  # (B, H)
    context: Tensor | None  # (B, D)
    token: Tensor  # (B, E)
    attention_weights: Tensor | None  # (B, N, S)

    def select(self, rows: Tensor) -> StepOutput:
        """The output of some rows of the batch."""
        return rows_of(self, rows)
