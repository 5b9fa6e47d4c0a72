"""Take the likeliest token, again and again."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from attnlab.search.hypothesis import Hypothesis
from attnlab.search.search import Search, Stepwise, check_lengths, length_limits, likeliest
from attnlab.search.token_by_token import write_token_by_token


class GreedySearch(Search):
    """The likeliest token at each step; a hypothesis's score is the sum of its log-probabilities.

    Args:
        max_length: tokens to write at most, `<eos>` included.
        max_length_ratio: tokens to write at most for each source token; None for no such limit.
        min_length: tokens to write before `<eos>` may come.
        replace_unknown: whether text has the source word that it attended to most in place of each `<unk>`.
    """

    n_best = 1

    def __init__(
        self,
        max_length: PositiveInt,
        max_length_ratio: Annotated[float, Field(gt=0)] | None = None,
        min_length: NonNegativeInt = 0,
        replace_unknown: bool = False,
    ) -> None:
        check_lengths(min_length, max_length)
        self.max_length = max_length
        self.max_length_ratio = max_length_ratio
        self.min_length = min_length
        self.replace_unknown = replace_unknown

    def __call__(
        self, model: Stepwise, source: Tensor, source_mask: Tensor, with_attention: bool = False
    ) -> list[list[Hypothesis]]:
        limits = length_limits(source_mask, self.max_length, self.max_length_ratio, self.min_length)
        found = write_token_by_token(
            model,
            source,
            source_mask,
            limits,
            self.min_length,
            choose=lambda log_probs, *_: likeliest(log_probs, 1)[1].squeeze(1),
            with_attention=with_attention,
        )
        return [[hypothesis] for hypothesis in found]
