"""Coverage: the attention receives where it looked before."""

from __future__ import annotations

import torch
from pydantic import NonNegativeFloat
from torch import Tensor, nn


class Coverage(nn.Module):
    """projected keys + w c_t, with c_t = sum_{t' < t} weights_t' (See et al. 2017, equations 10 and 11).

    The additive score so becomes v · tanh(W s + U h_i + w c_i). The loss sum_i min(weights_i, c_i) of each target
    token (equation 12) punishes looking again at the same place.

    Args:
        loss_weight: factor of that loss beside the negative log-likelihood; 0 leaves it out.
    """

    def __init__(self, loss_weight: NonNegativeFloat, *, key_size: int) -> None:
        super().__init__()
        self.loss_weight = loss_weight
        self.w = nn.Linear(1, key_size, bias=False)

    def forward(self, keys: Tensor, coverage: Tensor) -> Tensor:
        """projected keys (B, S, A) and coverage (B, S) -> keys (B, S, A)."""
        return keys + self.w(coverage.unsqueeze(2).to(keys.dtype))


def coverage_loss(weights: Tensor, coverage: Tensor) -> Tensor:
    """sum_i min(weights_i, c_i), the mean over heads: weights and coverage (B, N, S) -> (B,)."""
    return torch.minimum(weights, coverage).sum(-1).mean(1)
