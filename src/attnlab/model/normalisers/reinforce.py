"""Hard attention that draws a token, and learns from the reward of what it drew."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional as F

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class Reinforce(Normaliser):
    """w_i = 1 for one token, else 0; training draws the token with the probabilities softmax(z).

    The stochastic hard attention of Xu et al. 2015, section 4.1. A draw has no gradient; training
    adds one that is right on average, that of

        reward_weight (R - b) log p(drawn) + entropy_weight H

    to the log-likelihood's (their equation 12). R is the log-likelihood of the target, b its moving
    average, and H the entropy of softmax(z); `attnlab.training.reinforcement` has the details.
    Validation and search take the likeliest token.

    Args:
        reward_weight: λ_r; 1 is the gradient of the expected log-likelihood.
        entropy_weight: λ_e; above 0 keeps the attention drawing different tokens.
        baseline_decay: what a step keeps of the moving average.
    """

    is_sparse = True
    is_hard = True
    is_drawn = True

    def __init__(
        self,
        reward_weight: PositiveFloat,
        entropy_weight: NonNegativeFloat,
        baseline_decay: Annotated[float, Field(ge=0, lt=1)],
    ) -> None:
        super().__init__()
        self.reward_weight = reward_weight
        self.entropy_weight = entropy_weight
        self.baseline_decay = baseline_decay

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores.detach())
        if self.training:
            # The greatest of z and Gumbel's noise is a draw from softmax(z).
            z = z - torch.empty_like(z).exponential_().log()
        return F.one_hot(z.argmax(-1), z.shape[-1]).to(z.dtype)
