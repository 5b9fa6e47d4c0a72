"""Hard attention: one token has all the weight."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class Hard(Normaliser):
    """w_i = 1 for the token with the greatest score, else 0; learned straight through.

    The gradient is that of softmax(z / temperature), as if it were the weight (Bengio, Léonard and
    Courville 2013). With noise, training draws the token with the probabilities of softmax(z): the
    greatest of z_i + g_i with Gumbel's g_i (Jang, Gu and Poole 2017; Maddison, Mnih and Teh 2017).
    Validation and search draw nothing.

    Args:
        temperature: of the softmax that the gradient is of.
        noise: whether training draws.
    """

    is_sparse = True
    is_hard = True
    of_equal_scores = "fixed"

    def __init__(
        self, temperature: Annotated[float, Field(ge=0.001, le=1000)], noise: bool
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.noise = noise

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        if self.noise and self.training:
            z = z - torch.empty_like(z).exponential_().log()
        chosen = F.one_hot(z.argmax(-1), z.shape[-1]).to(z.dtype)
        if not z.requires_grad:
            return chosen
        soft = (z / self.temperature).softmax(-1)
        return chosen + (soft - soft.detach())
