"""A decoder that forgets its state from step to step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.faults.fault import Fault
from attnlab.model.decoders.cells import StackedCell
from attnlab.model.recurrence import RecurrentState
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class StateNotPassed(Fault):
    """The decoder's cell starts each step from zero.

    Wrong: s_t = f(0, [e(y_t-1); c_t]).
    Right: s_t = f(s_t-1, [e(y_t-1); c_t]).

    The attention is still asked with s_t-1, which starts with what the bridge makes of the
    encoder's final state: the only way by which a step knows of the steps before. Of TensorFlow's
    tutorial `nmt_with_attention`, whose decoder called `self.gru(x)` without `initial_state` (issue
    38248).
    """

    does: ClassVar[str] = (
        "The decoder's cell starts each step from zero; only the attention's query knows the step "
        "before, or the encoder's final state."
    )
    made_by: ClassVar[str] = (
        "[TensorFlow 38248](https://github.com/tensorflow/tensorflow/issues/38248), its tutorial "
        "on translation with attention"
    )
    noticed: ClassVar[str] = (
        "The gradient of the decoder's recurrent weights is zero; it repeats tokens, and loses its "
        "place."
    )

    def check(self, model: Seq2Seq) -> None:
        if model.decoder.body.state_shape.layers == 0:
            raise self.refusal(
                "is about a recurrent decoder, and this one has no cell; choose another "
                "model/decoder"
            )
        if model.decoder.attention is None and not model.decoder.reads_memory:
            raise self.refusal(
                "would leave a decoder without attention nothing of the source at all; choose a "
                "model/attention, or model.decoder.context=every_step"
            )

    def change_model(self, model: Seq2Seq) -> None:
        model.decoder.body.cell.__class__ = ForgetfulCell


class ForgetfulCell(StackedCell):
    """A stack of cells whose state before each step is zero."""

    def forward(self, from_x: Tensor, state: RecurrentState) -> RecurrentState:
        return super().forward(from_x, zeros_like(state))

    def all_steps(self, x: Tensor, state: RecurrentState) -> Tensor:
        steps = x.shape[1]
        rows = state.select(torch.arange(len(x), device=x.device).repeat_interleave(steps))
        after = self.forward(self.product(x.flatten(0, 1)), rows)  # of B T single steps
        return after.hidden[-1].unflatten(0, (len(x), steps))


def zeros_like(state: RecurrentState) -> RecurrentState:
    """A state of zeros, of the shape of another one."""
    cell = None if state.cell is None else torch.zeros_like(state.cell)
    return RecurrentState(torch.zeros_like(state.hidden), cell)
