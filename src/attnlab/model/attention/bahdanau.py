"""Bahdanau's additive score."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.score import Score, additive


class BahdanauScore(Score):
    """score(s, h) = v · tanh(W s + U h).

    Bahdanau et al. 2015, appendix A.1.2, the alignment model.

    Args:
        size: width A of the hidden layer.
        bias: adds a bias to each of the two products, as two Keras `Dense` layers have them; the
            paper has none.
    """

    def __init__(
        self, size: PositiveInt, bias: bool = False, *, query_size: int, key_size: int
    ) -> None:
        super().__init__()
        self.projected_key_size = size
        self.W = nn.Linear(query_size, size, bias=bias)
        self.U = nn.Linear(key_size, size, bias=bias)
        self.v = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.U(keys)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return additive(self.W(query), keys, self.v)
