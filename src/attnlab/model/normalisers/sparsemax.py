"""Sparsemax."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32
from attnlab.model.normalisers.threshold import threshold_of_sums


class Sparsemax(Normaliser):
    """w_i = max(0, z_i - tau), with the one tau that makes the sum 1.

    The point of the simplex that is nearest to z: most weights are exactly 0 (Martins and Astudillo
    2016).
    """

    is_sparse = True
    of_equal_scores = "uniform"

    def forward(self, scores: Tensor) -> Tensor:
        weights: Tensor = _Sparsemax.apply(at_least_float32(scores))
        return weights


class _Sparsemax(torch.autograd.Function):
    """The weights, and their gradient in closed form: nothing of the search for tau is kept."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        # A shift changes nothing, and large scores keep their precision.
        x = z - z.amax(-1, keepdim=True)
        weights = (x - threshold_of_sums(x)).clamp(min=0)
        ctx.save_for_backward(weights.sign())
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        # Of the tokens with a weight, the gradient less its mean (Martins and Astudillo 2016,
        # section 2.5).
        (seen,) = ctx.saved_tensors  # 1 where a token has a weight, else 0
        of_seen = gradient * seen
        mean = of_seen.sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)
        return of_seen - mean * seen
