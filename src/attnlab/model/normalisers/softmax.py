"""Softmax, the usual normaliser."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.model.normalisers.normaliser import Normaliser


class Softmax(Normaliser):
    """w_i = exp(z_i) / sum_j exp(z_j)."""

    of_equal_scores = "uniform"

    def forward(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
