"""A context that is made of the projected keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import heads_of, score_of
from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.score import Score
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class ContextFromKeys(Fault):
    """The weights average the projected keys, and not the encoder's outputs.

    Wrong: c_t = sum_s w_ts U h_s.
    Right: c_t = sum_s w_ts h_s.

    U must then serve two ends, to be compared with the query and to say what stands there. It needs
    keys as wide as the outputs. Of CNTK's layer of attention, issue 2083.
    """

    does: ClassVar[str] = (
        "The context is a mean of the projected keys in place of the encoder's outputs."
    )
    made_by: ClassVar[str] = (
        "[CNTK 2083](https://github.com/microsoft/CNTK/issues/2083), in its own layer of attention"
    )
    noticed: ClassVar[str] = "Other values leave the context as it is."
    inspected: ClassVar[str] = "context from the keys"

    def check(self, model: Seq2Seq) -> None:
        attention = model.decoder.attention
        if attention is None:
            raise self.refusal("needs an attention; choose a model/attention")
        if isinstance(attention, MultiHeadAttention):
            raise self.refusal(
                "is about an attention whose values are the encoder's outputs, but several heads "
                "project them; choose model/heads=one"
            )
        for head in heads_of(model):
            self._check_head(head, model.encoder.output_size)

    def _check_head(self, head: Attention, value_size: int) -> None:
        name = type(score_of(head)).__name__
        if head.score.by_position or not projects_keys(head.score):
            raise self.refusal(
                f"is about projected keys, but {name} projects none; choose model/attention="
                "bahdanau, concat or general"
            )
        if head.changes_keys:
            raise self.refusal(
                "averages keys, which this history changes from step to step; choose "
                "model/history=none"
            )
        if head.score.projected_key_size != value_size:
            raise self.refusal(
                f"puts the projected keys in the place of the values, but {name} makes keys of "
                f"{head.score.projected_key_size} numbers, and the encoder values of {value_size}; "
                f"choose model.attention.size={value_size}, or a decoder and an encoder of one "
                "width"
            )

    def change_model(self, model: Seq2Seq) -> None:
        for head in heads_of(model):
            head.__class__ = KeysForValues


def projects_keys(score: Score) -> bool:
    """Whether the keys that a score compares with are others than the encoder's outputs."""
    kind = type(score)
    return (
        kind.project_keys is not Score.project_keys
        or kind.project_source is not Score.project_source
    )


class KeysForValues(Attention):
    """An attention whose values are its projected keys."""

    def project(
        self, outputs: Tensor, positions: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        keys, _ = super().project(outputs, positions, mask)
        return keys, keys
