"""Softmax that may leave a part of the attention to no token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.normalisers.normaliser import Normaliser, at_least_float32


class SoftmaxWithSink(Normaliser):
    """w_i = exp(z_i) / (exp(b) + sum_j exp(z_j)).

    The sink, as it were a token without a value, takes the rest. With b = 0 it is Miller's softmax1
    (2023, "Attention is off by one"); a learned b for each head is that of gpt-oss (OpenAI 2025).

    Args:
        initial: of b.
        learned: whether b is learned, of each head by itself.
    """

    rows_sum_to_one = False

    def __init__(self, initial: float, learned: bool) -> None:
        super().__init__()
        start = torch.tensor(float(initial))
        self.b: Tensor
        if learned:
            self.b = nn.Parameter(start)
        else:
            self.register_buffer("b", start)

    def forward(self, scores: Tensor) -> Tensor:
        z = at_least_float32(scores)
        sink = self.b.to(z.dtype).expand(*z.shape[:-1], 1)
        return torch.cat([z, sink], dim=-1).softmax(-1)[..., :-1]
