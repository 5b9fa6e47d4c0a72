"""Softmax over the best scores alone."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class TopK(Normaliser):
    """Softmax over the k greatest scores; the other weights are exactly 0.

    Gupta et al. 2021, "Memory-efficient transformers via top-k attention". Scores that equal the
    k-th greatest are kept with it, so that no order of the tokens decides.

    Args:
        k: how many tokens may have a weight, at least 2.
    """

    is_sparse = True
    of_equal_scores = "uniform"

    def __init__(self, k: PositiveInt) -> None:
        super().__init__()
        if k == 1:
            raise ValueError(
                "k must be at least 2, got 1: a token that is alone has the weight 1 whatever its "
                "score, so that no score would learn; choose model/normaliser=hard"
            )
        self.k = k

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        kept = min(self.k, z.shape[-1])
        least = z.topk(kept, dim=-1).values[..., -1:]
        return z.masked_fill(z < least, -torch.inf).softmax(-1)
