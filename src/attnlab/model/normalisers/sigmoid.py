"""Sigmoid attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class Sigmoid(Normaliser):
    """w_i = sigmoid(z_i + b - log n), with n the number of tokens that may be seen.

    Ramapuram et al. 2024: each token has its weight by itself, and -log n makes their
    sum about 1 in the beginning.

    Args:
        initial: of b, which is learned, of each head by itself.
    """

    rows_sum_to_one = False

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor(float(initial)))

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        n = z.isfinite().sum(-1, keepdim=True).to(z.dtype)
        return (z + self.b - n.log()).sigmoid()
