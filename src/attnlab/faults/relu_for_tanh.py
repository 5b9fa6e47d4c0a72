"""A rectifier in place of the hyperbolic tangent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import linear

from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import heads_of, score_of
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.concat import ConcatScore
from attnlab.model.attention.normed_bahdanau import NormedBahdanauScore
from attnlab.model.attention.score import Score
from attnlab.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class ReluForTanh(Fault):
    """The additive score has another non-linearity.

    Wrong: score(s, h) = v · max(0, W s + U h).
    Right: score(s, h) = v · tanh(W s + U h).

    The score is no longer bounded by the norm of v. Of keon/seq2seq, issue 28, which pull request
    31 mended.
    """

    does: ClassVar[str] = "The additive score has a ReLU where the paper has a tanh."
    made_by: ClassVar[str] = (
        "[keon/seq2seq 28](https://github.com/keon/seq2seq/issues/28), mended six years later in "
        "[31](https://github.com/keon/seq2seq/pull/31)"
    )
    noticed: ClassVar[str] = "Only by a comparison with the formula; it trains, and looks right."

    def check(self, model: Seq2Seq) -> None:
        heads = heads_of(model)
        if not heads:
            raise self.refusal("needs an attention; choose a model/attention")
        score = score_of(heads[0])
        if type(score) not in WITH_RELU:
            raise self.refusal(
                f"is about the tanh of an additive score, which {type(score).__name__} has not; "
                "choose model/attention=bahdanau, normed_bahdanau or concat"
            )

    def change_model(self, model: Seq2Seq) -> None:
        for head in heads_of(model):
            score = score_of(head)
            score.__class__ = WITH_RELU[type(score)]


def rectified(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """v · max(0, q + k): query (B, T, A), keys (B, S, A), v (A,) -> (B, T, S)."""
    summed = query.unsqueeze(2) + keys.unsqueeze(1)  # (B, T, S, A)
    return summed.relu() @ v


class ReluBahdanauScore(BahdanauScore):
    """score(s, h) = v · max(0, W s + U h)."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return rectified(self.W(query), keys, self.v)


class ReluNormedBahdanauScore(NormedBahdanauScore):
    """score(s, h) = g v/|v| · max(0, W s + U h + b)."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return rectified(self.W(query), keys, self.g * self.v / self.v.norm())


class ReluConcatScore(ConcatScore):
    """score(s, h) = v · max(0, W [s; h])."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        of_query = linear(query, self.W.weight[:, : self.query_size])
        return rectified(of_query, keys, self.v)


WITH_RELU: dict[type[Score], type[Score]] = {
    BahdanauScore: ReluBahdanauScore,
    NormedBahdanauScore: ReluNormedBahdanauScore,
    ConcatScore: ReluConcatScore,
}
