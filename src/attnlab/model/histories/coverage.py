"""Coverage: how much of each token was seen so far."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import NonNegativeFloat
from torch import Tensor

from attnlab.model.histories.history import Remembered
from attnlab.model.histories.last_weights import LastWeights


class Coverage(LastWeights):
    """projected keys + w c_t, with c_t = sum_{t' < t} weights_t'.

    See et al. 2017, equations 10 and 11: a sum where `LastWeights` has the last summand alone.

    The additive score so becomes v · tanh(W s + U h_i + w c_i). The loss sum_i min(weights_i, c_i)
    of each target token (equation 12) punishes looking again at the same place.

    Args:
        loss_weight: factor of that loss beside the negative log-likelihood; 0 leaves it out.
    """

    loss_name: ClassVar[str | None] = "coverage_loss"

    def __init__(self, loss_weight: NonNegativeFloat, *, key_size: int) -> None:
        super().__init__(key_size=key_size)
        self.loss_weight = loss_weight
        # With negative weights the loss would fall without an end.
        self.needs_positive_weights = loss_weight > 0

    def after(
        self, past: Remembered, query: Tensor, context: Tensor, weights: Tensor
    ) -> Remembered:
        return Remembered(past.weights + weights)

    def loss(self, past: Remembered, weights: Tensor) -> Tensor:
        return torch.minimum(weights, past.weights).sum(-1)
