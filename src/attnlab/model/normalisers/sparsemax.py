"""Sparsemax."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class Sparsemax(Normaliser):
    """w_i = max(0, z_i - tau), with the one tau that makes the sum 1.

    The point of the simplex that is nearest to z: most weights are exactly 0 (Martins and Astudillo
    2016, algorithm 1).
    """

    is_sparse = True

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        # A shift changes nothing, and large scores keep their precision
        z = z - z.amax(-1, keepdim=True).detach()
        # 1. The support is the longest run of sorted scores with 1 + k z_(k) > sum_{j<=k} z_(j).
        ordered = z.sort(-1, descending=True).values
        sums = ordered.cumsum(-1)
        k = torch.arange(1, z.shape[-1] + 1, device=z.device)
        size = (1 + k * ordered > sums).sum(-1, keepdim=True)
        # 2. tau makes the weights of the support sum to 1.
        tau = (sums.gather(-1, size - 1) - 1) / size
        return (z - tau).clamp(min=0)
