"""An LSTM whose cell state starts as its hidden state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from attnlab.faults.fault import Fault
from attnlab.model.recurrence import RecurrentState
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class CellFromHidden(Fault):
    """The decoder's first cell state is its first hidden state.

    Wrong: c_0 = s_0.
    Right: c_0 = what the bridge makes of the encoder's cell state.

    A hidden state is an output of tanh, within -1 and 1; a cell state counts, and has no bounds. Of
    JoeyNMT, issue 13: `(h, h)`, where an LSTM asks for two states.
    """

    does: ClassVar[str] = (
        "The LSTM decoder's first cell state is a copy of its first hidden state; the encoder's "
        "cell state is lost."
    )
    made_by: ClassVar[str] = (
        "[JoeyNMT 13](https://github.com/joeynmt/joeynmt/issues/13): `(h, h)` where an LSTM asks "
        "for two states"
    )
    noticed: ClassVar[str] = (
        "The bridge's map of the cell state gets no gradient; both first states are equal."
    )

    def check(self, model: Seq2Seq) -> None:
        if not model.decoder.body.state_shape.has_cell:
            raise self.refusal(
                "is about the cell state of an LSTM, and this decoder has none; choose "
                "model/encoder=lstm, or model.decoder.cell=lstm"
            )
        if not model.bridge.passes_source:
            raise self.refusal(
                "copies the first hidden state, but both first states are zero; choose "
                "model/bridge=linear"
            )

    def problems(self, bound: Mapping[str, Any]) -> list[str]:
        if bound["hardware"].strategy == "single":
            return []
        return [
            f"fault={self.name} leaves a layer of the bridge without a gradient, for which several "
            f"processes would wait, but hardware.strategy is {bound['hardware'].strategy}; choose "
            "hardware.strategy=single"
        ]

    def change_model(self, model: Seq2Seq) -> None:
        model.bridge.register_forward_hook(hidden_for_cell)


def hidden_for_cell(bridge: nn.Module, given: Any, state: RecurrentState) -> RecurrentState:
    """The first state with its hidden state in the place of the cell's."""
    return RecurrentState(state.hidden, state.hidden)
