"""A module that makes weights of scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.normalisers.normaliser import Normaliser


class GainedSoftmax(Normaliser):
    """w_i = g exp(z_i) / sum_j exp(z_j): the model learns how long a context is.

    Args:
        initial: value of g, which is learned.
    """

    rows_sum_to_one = False

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor([initial]))

    def forward(self, scores: Tensor) -> Tensor:
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        return self.gain * weights
