"""Softmax with a temperature that is learned."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class LearnedTemperature(Normaliser):
    """softmax(z / tau), with tau = exp(a) learned, of each head by itself.

    Lin et al. 2018 ("Learning when to concentrate or divert attention") predict a temperature at
    each step; here one is learned for all.

    Args:
        initial: of tau.
    """

    of_equal_scores = "uniform"

    def __init__(self, initial: Annotated[float, Field(ge=0.001, le=1000)]) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(math.log(initial)))

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        # Minus infinity stays what it is, and has no share in the gradient of tau.
        hidden = z == -torch.inf
        cooled = z.masked_fill(hidden, 0) / self.a.exp()
        return cooled.masked_fill(hidden, -torch.inf).softmax(-1)
