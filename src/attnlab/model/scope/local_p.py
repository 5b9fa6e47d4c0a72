"""A window whose place is predicted."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.scope.scope import Scope, Window


class LocalP(Scope):
    """Source tokens within [p_t - D, p_t + D], those near p_t favoured (Luong et al. 2015, section 3.2, "local-p").

    p_t = n sigmoid(v · tanh(W s_t)) for a source of n tokens (equation 9), no farther than the last one; the weights
    are multiplied by exp(-(i - p_t)^2 / (2 sigma^2)) with sigma = D/2 after the softmax (equation 10), so that they
    no longer sum to 1.

    Args:
        width: D, tokens on each side of the centre.
        renormalise: divide by the sum after the multiplication, which the paper does not.
    """

    def __init__(self, width: PositiveInt, renormalise: bool, *, query_size: int) -> None:
        super().__init__()
        self.width, self.renormalise = width, renormalise
        self.W = nn.Linear(query_size, query_size, bias=False)
        self.v = nn.Parameter(torch.empty(query_size).uniform_(-1, 1) / math.sqrt(query_size))

    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        n = lengths.unsqueeze(1)  # (B, 1)
        share = torch.sigmoid((torch.tanh(self.W(query)) @ self.v).to(self.v.dtype))  # (B, T)
        centre = (n * share).minimum(n - 1.0)
        distance = positions.unsqueeze(1) - centre.unsqueeze(2)  # (B, T, S)
        sigma = self.width / 2
        return Window(
            inside=distance.abs() <= self.width,
            emphasis=torch.exp(-distance.square() / (2 * sigma**2)),
            renormalise=self.renormalise,
        )
