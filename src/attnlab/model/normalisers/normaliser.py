"""The base class of normalisers, which make attention weights of scores.

Axes: B batch, T target length, S source length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnlab.model.attention.equal_scores import OfEqualScores


class Normaliser(nn.Module, ABC):
    """Makes weights of scores.

    A subclass defines `forward`, and may have weights of its own. Its constructor takes its
    settings; the program gives it nothing. Each head has a normaliser of its own.

    rows_sum_to_one: whether the weights of a row sum to 1. False for such as a sigmoid of each
        score, or a softmax that may leave a part to nothing.
    is_sparse: whether weights of tokens that may be seen can be exactly 0.
    is_hard: whether one token has all the weight.
    is_drawn: whether training draws that token with the probabilities softmax(scores), without a
        gradient. It then has the settings of `Reinforce`, by which training learns from the draws.
    is_signed: whether weights may be negative.
    of_equal_scores: what it makes of them: weights that are `uniform` over what may be seen, others
        that no parameter changes (`fixed`), or weights that may be `learned` yet.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ()

    rows_sum_to_one: bool = True
    is_sparse: bool = False
    is_hard: bool = False
    is_drawn: bool = False
    is_signed: bool = False
    of_equal_scores: OfEqualScores = "learned"

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, scores: Tensor) -> Tensor:
        """Return the weights, (..., S), which are 0 where nothing may be seen.

        Weights are at least in float32: in half precision those of a long sentence would not sum to
        1.

        Args:
            scores: (..., S), minus infinity where nothing may be seen; at least one in a row is
                finite.
        """


def at_least_float32(scores: Tensor) -> Tensor:
    """The scores in float32, or in float64 where they are already."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))
