"""A mask that takes pads to stand behind the sentence, where they stand in front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import FaultySeq2Seq
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class MaskAssumesRightPads(Fault):
    """Sources are padded in front, and the mask is made of their lengths.

    Wrong: m_s = [s < n]: of S columns the first n are taken for the sentence of n tokens.
    Right: m_s = [s >= S - n], for its pads stand in front.

    So S - n pads count as words, and as many words at its end are lost, for the recurrence and for
    the attention. A sentence alone has no pads, and is right. `pack_padded_sequence` takes pads to
    stand behind as well and does not say so (fairseq, pull request 851); NeMo Automodel, pull
    request 3704, counted pads from the end, and so found none.
    """

    does: ClassVar[str] = (
        "Sources are padded in front, and the mask `arange(S) < length` takes the first columns "
        "for the sentence: its end is lost, and pads are read in its place."
    )
    made_by: ClassVar[str] = (
        "`pack_padded_sequence` behind pads in front ([fairseq "
        "851](https://github.com/facebookresearch/fairseq/pull/851)); [NeMo Automodel "
        "3704](https://github.com/NVIDIA-NeMo/Automodel/pull/3704), whose mask then hid no pad"
    )
    noticed: ClassVar[str] = "A sentence alone is right, and loses its end beside a longer one."

    def check(self, model: Seq2Seq) -> None:
        if model.padding.encoder == "post":
            raise self.refusal(
                "is about sources that are padded in front, but these are padded behind, where "
                "its mask is right; choose padding.encoder=pre"
            )

    def change_model(self, model: Seq2Seq) -> None:
        model.__class__ = TakingPadsToStandBehind


class TakingPadsToStandBehind(FaultySeq2Seq):
    """A model that makes the mask of a source of its length."""

    def encode(self, source: Tensor, source_mask: Tensor, *others: Any, **named: Any) -> Any:
        places = torch.arange(source_mask.shape[1], device=source_mask.device)
        taken_for_real = places < source_mask.sum(1, keepdim=True)
        return super().encode(source, taken_for_real, *others, **named)
