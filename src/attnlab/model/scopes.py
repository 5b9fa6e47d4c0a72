"""Scopes: which source tokens the attention may look at, step by step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.equal_scores import OfEqualScores


@dataclass(frozen=True)
class Window:
    """What may be seen of the source.

    inside: None where all of it may.
    emphasis: factors of the weights after they were normalised; None for none.
    renormalise: whether the weights are divided by their sum after that.
    """

    inside: Tensor | None = None  # (B, T, S) bool
    emphasis: Tensor | None = None  # (B, T, S)
    renormalise: bool = False

    def reweigh(self, weights: Tensor) -> Tensor:
        """Weights (B, T, S), multiplied by the emphasis; rows of zeros stay zeros."""
        if self.emphasis is None:
            return weights
        weights = weights * self.emphasis
        if not self.renormalise:
            return weights
        total = weights.sum(-1, keepdim=True)
        return weights / total.masked_fill(total == 0, 1)


class Scope(nn.Module, ABC):
    """Opens a window on the source at every step.

    A subclass defines `forward`. Its constructor takes its settings, and `query_size`, the width H
    of the query, where it needs it. Positions count real tokens, so that padding moves none.

    follows_the_target: True where the window depends on `t`, which a classifier does not have.
    keeps_the_sum: whether weights that sum to 1 still do so in its window.
    of_equal_scores: what weights it leaves of them, as a normaliser's attribute of this name.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ("query_size",)

    follows_the_target: bool = False
    keeps_the_sum: bool = True
    of_equal_scores: OfEqualScores = "learned"

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        """Return what may be seen of the source at each of these steps.

        Args:
            query: (B, T, H).
            t: (B, T), the position of each query in the target.
            positions: (B, S), the position of each source token; pads come behind the last real
                one.
            lengths: (B,), real source tokens.
        """


class GlobalScope(Scope):
    """Every source token may be seen at every step (Luong et al. 2015, section 3.1)."""

    of_equal_scores = "uniform"

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        return Window()


class LocalM(Scope):
    """Source tokens within [p_t - D, p_t + D], with p_t = t.

    "local-m" of Luong et al. 2015, section 3.2. The target may be longer than the source: p_t then
    stays at the last real token.

    Args:
        width: D, tokens on each side of the centre.
    """

    follows_the_target = True
    of_equal_scores = "uniform"

    def __init__(self, width: PositiveInt) -> None:
        super().__init__()
        self.width = width

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        centre = t.minimum(lengths.unsqueeze(1) - 1).unsqueeze(2)  # (B, T, 1)
        return Window(inside=(positions.unsqueeze(1) - centre).abs() <= self.width)


class LocalP(Scope):
    """Source tokens within [p_t - D, p_t + D], those near p_t favoured.

    "local-p" of Luong et al. 2015, section 3.2. p_t = n sigmoid(v · tanh(W s_t)) for a source of n
    tokens (equation 9), no farther than the last one; the weights are multiplied by
    exp(-(i - p_t)^2 / (2 sigma^2)) with sigma = D/2 after the softmax (equation 10), so that they
    no longer sum to 1.

    Args:
        width: D, tokens on each side of the centre.
        renormalise: divide by the sum after the multiplication, which the paper does not.
    """

    def __init__(self, width: PositiveInt, renormalise: bool = False, *, query_size: int) -> None:
        super().__init__()
        self.width, self.renormalise = width, renormalise
        self.keeps_the_sum = renormalise
        self.W = nn.Linear(query_size, query_size, bias=False)
        self.v = nn.Parameter(torch.empty(query_size).uniform_(-1, 1) / math.sqrt(query_size))

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        # 1. Predict the position that the window is centred on: p_t.
        n = lengths.unsqueeze(1)  # (B, 1)
        energy = torch.tanh(self.W(query)) @ self.v
        share = torch.sigmoid(energy.to(self.v.dtype))  # (B, T)
        centre = (n * share).minimum(n - 1.0)

        # 2. See what lies near it, and favour what lies nearest.
        distance = positions.unsqueeze(1) - centre.unsqueeze(2)  # (B, T, S)
        sigma = self.width / 2
        return Window(
            inside=distance.abs() <= self.width,
            emphasis=torch.exp(-distance.square() / (2 * sigma**2)),
            renormalise=self.renormalise,
        )
