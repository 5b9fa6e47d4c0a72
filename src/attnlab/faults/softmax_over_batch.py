"""A softmax over the sentences of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import heads_of
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class SoftmaxOverBatch(Fault):
    """The softmax runs along the axis of the batch, and not along that of the source.

    Wrong: w_bts = exp(z_bts) / sum_b' exp(z_b'ts), over the sentences b' of the batch with a real
    token at s.
    Right: w_bts = exp(z_bts) / sum_s' exp(z_bts'), over the real tokens s' of the sentence b.

    Of PyTorch-NLP, issue 2: `Softmax(dim=0)` of scores (B, S). `torch.nn.functional.softmax`
    takes the first of three axes where it is given none.
    """

    does: ClassVar[str] = (
        "The softmax runs over the sentences of the batch: each source position shares its weight "
        "among them."
    )
    made_by: ClassVar[str] = (
        "[PyTorch-NLP 2](https://github.com/PetrochukM/PyTorch-NLP/issues/2); "
        "`torch.nn.functional.softmax` without `dim` on three axes, with a warning"
    )
    noticed: ClassVar[str] = (
        "A sentence alone has weights of 1 everywhere; its translation depends on its neighbours."
    )
    inspected: ClassVar[str] = "sentences of a batch mix"

    def check(self, model: Seq2Seq) -> None:
        heads = heads_of(model)
        if not heads:
            raise self.refusal("needs an attention; choose a model/attention")
        if type(heads[0].normaliser) is not Softmax:
            raise self.refusal(
                f"is about a softmax, but the weights are made by "
                f"{type(heads[0].normaliser).__name__}; choose model/normaliser=softmax"
            )
        if heads[0].history is not None and heads[0].history.makes_weights:
            raise self.refusal(
                f"is about the softmax, which {type(heads[0].history).__name__} does not use; "
                "choose model/history=none"
            )

    def change_model(self, model: Seq2Seq) -> None:
        for head in heads_of(model):
            head.normaliser.__class__ = SoftmaxAlongBatch


class SoftmaxAlongBatch(Softmax):
    """w_b = exp(z_b) / sum_b' exp(z_b'), over the first axis."""

    rows_sum_to_one = False

    def forward(self, scores: Tensor) -> Tensor:
        hidden = scores.isneginf()
        # A place where no sentence has a token would give 0 / 0.
        finite = scores.masked_fill(hidden.all(0, keepdim=True), 0)
        weights = finite.softmax(0, dtype=torch.promote_types(scores.dtype, torch.float32))
        return weights.masked_fill(hidden, 0)
