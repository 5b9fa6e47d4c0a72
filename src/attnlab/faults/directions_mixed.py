"""Final states of two directions that are joined by a `view`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attnlab.faults.fault import Fault
from attnlab.model.encoders.encoder import Encoded
from attnlab.model.encoders.recurrent import RecurrentEncoder
from attnlab.model.recurrence import RecurrentState
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class DirectionsMixed(Fault):
    """The final states of the two directions are joined by `view` alone.

    torch gives them as h (2 L, B, H), the forward and the backward one of each layer.

    Wrong: h.view(L, B, 2 H): sentence b gets the states of sentences 2 b and 2 b + 1.
    Right: [h_forward_b; h_backward_b], by a transposition before the view.

    With one sentence in the batch both are the same. Of fairseq's LSTM, issue 239, and of many
    questions that follow it.
    """

    does: ClassVar[str] = (
        "The two directions' final states are joined by `view` without a transposition: a "
        "sentence starts with the states of two others."
    )
    made_by: ClassVar[str] = (
        "[fairseq 239](https://github.com/facebookresearch/fairseq/issues/239); "
        "[graykode/nlp-tutorial 38](https://github.com/graykode/nlp-tutorial/issues/38)"
    )
    noticed: ClassVar[str] = "A sentence alone is right, and wrong in a batch."

    def check(self, model: Seq2Seq) -> None:
        encoder = model.encoder
        if not isinstance(encoder, RecurrentEncoder) or not encoder.backward_layers:
            raise self.refusal(
                "is about the two directions of a recurrent encoder; choose model/encoder=gru and "
                "model.encoder.bidirectional=true"
            )
        if encoder.merge != "concatenate":
            raise self.refusal(
                f"joins the two directions, but model.encoder.merge is {encoder.merge}; choose "
                "model.encoder.merge=concatenate"
            )
        if not model.bridge.reads_final_state and model.decoder.attention is not None:
            raise self.refusal(
                "is about the encoder's final state, which this bridge does not read; choose "
                "model/bridge=linear or copy"
            )

    def change_model(self, model: Seq2Seq) -> None:
        model.encoder.register_forward_hook(with_mixed_states)


def with_mixed_states(encoder: nn.Module, given: Any, encoded: Encoded) -> Encoded:
    """The encoded source with other sentences' final states."""
    final = encoded.final
    cell = None if final.cell is None else mixed(final.cell)
    return replace(encoded, final=RecurrentState(mixed(final.hidden), cell))


def mixed(joined: Tensor) -> Tensor:
    """States (L, B, 2 H) of layers, as `view` makes them of torch's own (2 L, B, H)."""
    by_direction = torch.stack(joined.chunk(2, dim=2), dim=1)  # (L, 2, B, H)
    return by_direction.contiguous().view(joined.shape)
