"""A module that makes weights of scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.normalisers import Normaliser


class SoftmaxWithSink(Normaliser):
    """w_i = exp(z_i) / (exp(b) + sum_j exp(z_j)): a part of the attention may go to no token.

    Args:
        initial: value of b, which is learned.
    """

    rows_sum_to_one = False

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.sink = nn.Parameter(torch.tensor([initial]))

    def forward(self, scores: Tensor) -> Tensor:
        sink = self.sink.to(scores.dtype).expand(*scores.shape[:-1], 1)
        weights = torch.cat([scores, sink], dim=-1).softmax(-1, dtype=torch.float32)
        return weights[..., :-1]
