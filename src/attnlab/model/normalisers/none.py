"""No normaliser: the scores are the weights."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class NoneNormaliser(Normaliser):
    """w_i = z_i, of any sign and any sum; 0 where nothing may be seen.

    With a score that is a product of query and key this is linear attention without a feature map:
    a read of the matrix sum_i k_i v_i^T (Schlag et al. 2021, section 3.1).
    """

    rows_sum_to_one = False
    is_signed = True

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        return z.masked_fill(z == -torch.inf, 0)
