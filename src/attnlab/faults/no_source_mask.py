"""An attention without a mask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import heads_of
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class NoSourceMask(Fault):
    """The attention weighs pads like words.

    Wrong: w_s = exp(z_s) / sum_s' exp(z_s'), over all S columns of the batch.
    Right: the same sum over the real tokens of the sentence, and w_s = 0 at pads.

    The encoder still skips pads, so that their values are zero: the context shrinks with them.
    `padding=unmasked` is the same model. Of PyTorch's tutorials, issue 593, and of OpenNMT-py,
    issue 272.
    """

    does: ClassVar[str] = "The softmax runs over the pads, too: they take a share of the weight."
    made_by: ClassVar[str] = (
        "[pytorch/tutorials 593](https://github.com/pytorch/tutorials/issues/593); "
        "[OpenNMT-py 272](https://github.com/OpenNMT/OpenNMT-py/issues/272)"
    )
    noticed: ClassVar[str] = (
        "`attention_pad_mass` is above 0; a sentence translates otherwise beside a longer one."
    )
    inspected: ClassVar[str] = "no mask"

    def check(self, model: Seq2Seq) -> None:
        if not heads_of(model):
            raise self.refusal("needs an attention; choose a model/attention")
        if not model.padding.attention_masked:
            raise self.refusal(
                "takes the mask of the source away, but there is none; choose "
                "padding.attention_masked=true"
            )

    def change_model(self, model: Seq2Seq) -> None:
        model.padding = replace(model.padding, attention_masked=False)
