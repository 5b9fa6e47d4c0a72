"""A loss that is averaged over pads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from attnlab.data.prepared import PreparedData
from attnlab.faults.fault import Fault
from attnlab.model.seq2seq import Seq2Seq

if TYPE_CHECKING:
    from attnlab.tasks.translation.module import Seq2SeqModule


@dataclass(frozen=True)
class LossOverPads(Fault):
    """The loss of a batch is divided by all its places, pads among them.

    Wrong: L = 1 / (B T) sum_bt m_bt l_bt.
    Right: L = sum_bt m_bt l_bt / sum_bt m_bt, with the mask m of the real target tokens.

    So a batch of unlike lengths weighs less, and a setting that changes the padding changes the
    learning rate. The loss that is logged, of the validation too, stays that of a real token.

    Of TensorFlow Addons, issue 2637, and of IBM's pytorch-seq2seq, issue 125.
    """

    does: ClassVar[str] = (
        "The loss is divided by all places of the batch: masked pads count as tokens without loss."
    )
    made_by: ClassVar[str] = (
        "[TensorFlow Addons 2637](https://github.com/tensorflow/addons/issues/2637); "
        "[IBM/pytorch-seq2seq 125](https://github.com/IBM/pytorch-seq2seq/issues/125); "
        "[Dive into Deep Learning 2076](https://github.com/d2l-ai/d2l-en/issues/2076)"
    )
    noticed: ClassVar[str] = (
        "The loss of one sentence falls when a longer one joins its batch; gradients are smaller "
        "the more pads there are."
    )

    def check(self, model: Seq2Seq) -> None:
        """Every model has a loss."""

    def problems(self, bound: Mapping[str, Any]) -> list[str]:
        if bound["training"].accumulate == 1:
            return []
        return [
            f"fault={self.name} divides by the places of one batch, but training.accumulate is "
            f"{bound['training'].accumulate}; choose training.accumulate=1"
        ]

    def change_training(self, module: Seq2SeqModule, data: PreparedData) -> None:
        from attnlab.faults.faulty_training import DividingByAllPlaces  # imports Lightning

        module.__class__ = DividingByAllPlaces
