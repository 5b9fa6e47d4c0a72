"""An encoder whose recurrence reads pads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from attnlab.faults.fault import Fault
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class PadsInFinalState(Fault):
    """The encoder's recurrence goes on over the pads.

    Wrong: h_S = f(h_S-1, e(<pad>)), and the final state is h_S, S the longest of the batch.
    Right: the final state of a sentence of n tokens is h_n.

    Where pads stand in front, the backward direction ends with them. `padding.recurrence=read` has
    the decoder read its pads in front as well. Of PyTorch's tutorials, issue 3643.
    """

    does: ClassVar[str] = (
        "The encoder reads pads like words, so that the final state of a short sentence has passed "
        "over them."
    )
    made_by: ClassVar[str] = (
        "[pytorch/tutorials 3643](https://github.com/pytorch/tutorials/issues/3643), and before "
        "it [2840](https://github.com/pytorch/tutorials/issues/2840)"
    )
    noticed: ClassVar[str] = "More pads behind a sentence change its final state."

    def check(self, model: Seq2Seq) -> None:
        encoder = model.encoder
        if not isinstance(encoder, RecurrentEncoder):
            raise self.refusal(
                "is about the recurrence of an encoder; choose model/encoder=rnn, gru or lstm"
            )
        if encoder.padding.recurrence == "read":
            raise self.refusal(
                "lets the recurrence read pads, which it does already; choose "
                "padding.recurrence=skip"
            )

    def change_model(self, model: Seq2Seq) -> None:
        assert isinstance(model.encoder, RecurrentEncoder)
        model.encoder.padding = replace(model.encoder.padding, recurrence="read")
