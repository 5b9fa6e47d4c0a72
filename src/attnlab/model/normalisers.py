"""Normalisers: from scores to attention weights.

Axes: B batch, T target length, S source length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn


class Normaliser(nn.Module, ABC):
    """Makes weights of scores.

    A subclass defines `forward`, and may have weights of its own. Its constructor takes its
    settings; the program gives it nothing. Each head has a normaliser of its own.

    rows_sum_to_one: whether the weights of a row sum to 1. False for such as a sigmoid of each
        score, or a softmax that may leave a part to nothing.
    is_sparse: whether weights of tokens that may be seen can be exactly 0.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = ()

    rows_sum_to_one: bool = True
    is_sparse: bool = False

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


class Softmax(Normaliser):
    """w_i = exp(z_i) / sum_j exp(z_j)."""

    def forward(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))


class Sparsemax(Normaliser):
    """w_i = max(0, z_i - tau), with the one tau that makes the sum 1.

    The point of the simplex that is nearest to z: most weights are exactly 0 (Martins and Astudillo
    2016, algorithm 1).
    """

    is_sparse = True

    def forward(self, scores: Tensor) -> Tensor:
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
