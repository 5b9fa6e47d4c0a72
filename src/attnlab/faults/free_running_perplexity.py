"""A loss of the model's own guesses, called perplexity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from attnlab.batch import Batch
from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import FaultySeq2Seq
from attnlab.model.seq2seq import Seq2Seq
from attnlab.model.unrolled import Unrolled


@dataclass(frozen=True)
class FreeRunningPerplexity(Fault):
    """In evaluation mode, the pass over a target is fed the model's own guesses.

    Wrong: log p(y_t | ŷ_1, ..., ŷ_t-1, x), with the guess ŷ_t-1 = argmax of step t - 1.
    Right: log p(y_t | y_1, ..., y_t-1, x), of which the perplexity is made.

    One wrong guess, or one in another order, and all that follows is held against the reference's
    tokens. Training and the searches are as they should be; the likelihood of a given target, and
    the attention that goes with it, are not. Of bentrevett/pytorch-seq2seq, issue
    146, which evaluates `model(src, trg, 0)` and prints exp of its loss as "PPL".
    """

    does: ClassVar[str] = (
        "The validation's and the test's loss of a target is computed on the model's own guesses, "
        "and its exponential called perplexity."
    )
    made_by: ClassVar[str] = (
        "[bentrevett/pytorch-seq2seq 146]"
        "(https://github.com/bentrevett/pytorch-seq2seq/issues/146), `model(src, trg, 0)`"
    )
    noticed: ClassVar[str] = (
        "The loss rises while BLEU rises, too; it is far above the loss of the training."
    )

    def check(self, model: Seq2Seq) -> None:
        """Every translation model has a loss of its targets."""

    def change_model(self, model: Seq2Seq) -> None:
        model.__class__ = FedItsOwnGuesses


class FedItsOwnGuesses(FaultySeq2Seq):
    """A model that reads its own guesses wherever it is not trained."""

    def forward(
        self, batch: Batch, feed_reference: Tensor | None = None, *others: Any, **named: Any
    ) -> Unrolled:
        if not self.training:
            feed_reference = torch.zeros_like(batch.target_mask)
        return super().forward(batch, feed_reference, *others, **named)
