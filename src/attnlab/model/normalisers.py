"""Normalisers: from scores to attention weights that sum to 1."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Normaliser(ABC):
    """Makes weights of scores."""

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def __call__(self, scores: Tensor) -> Tensor:
        """scores (..., S), minus infinity where nothing may be seen -> weights (..., S) that are 0
        there and sum to 1.

        Weights are at least in float32: in half precision those of a long sentence would not sum to
        1.
        """


class Softmax(Normaliser):
    """w_i = exp(z_i) / sum_j exp(z_j)."""

    def __call__(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))


class Sparsemax(Normaliser):
    """w_i = max(0, z_i - tau), with the one tau that makes the sum 1 (Martins and Astudillo 2016,
    algorithm 1).

    The point of the simplex that is nearest to z: most weights are exactly 0.
    """

    def __call__(self, scores: Tensor) -> Tensor:
        z = scores.to(torch.promote_types(scores.dtype, torch.float32))
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
