"""A mask that sets scores to a small number in place of minus infinity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import heads_of
from attnlab.model.attention.attention import Attention
from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import Remembered
from attnlab.model.scopes import Window
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class MaskThatLeaks(Fault):
    """Scores of pads are set to a number that is too near to the others.

    Wrong: z_s = c at pads, with c = 1e-10.
    Right: z_s = -inf at pads.

    A slip of the pen for -1e10: `masked_fill(mask == 0, 1e-10)` stands in several public attention
    modules. Pads outside of the window of a scope stay hidden.

    score: c; below -50 the leak is less than single precision can tell.
    """

    does: ClassVar[str] = (
        "Scores of pads are 1e-10 in place of −∞: each pad has as much weight as a real token with "
        "a score of 0."
    )
    made_by: ClassVar[str] = (
        "`masked_fill(mask == 0, 1e-10)`, meant as `-1e10`: the line stands in several public "
        "attention modules"
    )
    noticed: ClassVar[str] = (
        "`attention_pad_mass` is above 0 although there is a mask; with it the weights of a short "
        "sentence sum to less than 1 over its real tokens."
    )
    inspected: ClassVar[str] = "mask that leaks"

    score: Annotated[float, Field(ge=-50)] = 1e-10

    def check(self, model: Seq2Seq) -> None:
        heads = heads_of(model)
        if not heads:
            raise self.refusal("needs an attention; choose a model/attention")
        if not model.padding.attention_masked:
            raise self.refusal(
                "is about the mask of the source, but there is none; choose "
                "padding.attention_masked=true"
            )

    def change_model(self, model: Seq2Seq) -> None:
        for head in heads_of(model):
            head.__class__ = LeakingAttention
            assert isinstance(head, LeakingAttention)
            head.score_of_pads = self.score


class LeakingAttention(Attention):
    """An attention that gives pads a score.

    score_of_pads: c.
    """

    score_of_pads: float

    def scores(
        self, query: Tensor, memory: Memory, t: Tensor, past: Remembered | None = None
    ) -> tuple[Tensor, Window]:
        scores, window = super().scores(query, memory, t, past)
        if memory.mask is not None:
            scores = scores.masked_fill(~memory.mask.unsqueeze(1), self.score_of_pads)
        if window.inside is not None:
            scores = scores.masked_fill(~window.inside, -torch.inf)
        return scores, window
