"""Softmax over a window around the best score."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class AroundBest(Normaliser):
    """Softmax over the tokens within [b - D, b + D], b being the first token with the best score.

    A local attention whose window follows the scores themselves, where that of Luong et al. 2015
    (section 3.2) follows the target or is predicted. All other weights are exactly 0.

    Args:
        reach: D, tokens on each side of the best.
    """

    is_sparse = True
    of_equal_scores = "fixed"

    def __init__(self, reach: PositiveInt) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        best = z.argmax(-1, keepdim=True)
        distance = (torch.arange(z.shape[-1], device=z.device) - best).abs()
        return z.masked_fill(distance > self.reach, -torch.inf).softmax(-1)
