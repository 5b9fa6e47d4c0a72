"""The additive score with a normalised v."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.score import Score, additive


class NormedBahdanauScore(Score):
    """score(s, h) = g v/|v| · tanh(W s + U h + b) ("normed_bahdanau" of tensorflow/nmt).

    Weight normalisation of v (Salimans and Kingma 2016, equation 2): a learned scale g, which
    starts at 1/sqrt(A), and a direction.

    Args:
        size: width A of the hidden layer.
    """

    def __init__(self, size: PositiveInt, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size = size
        self.W = nn.Linear(query_size, size, bias=False)
        self.U = nn.Linear(key_size, size)  # its bias is b
        self.v = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))
        self.g = nn.Parameter(torch.tensor(1 / math.sqrt(size)))

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.U(keys)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return additive(self.W(query), keys, self.g * self.v / self.v.norm())
