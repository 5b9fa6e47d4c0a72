"""Luong's concat score."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import linear

from attnlab.model.attention.score import Score, additive


class ConcatScore(Score):
    """score(s, h) = v · tanh(W [s; h]) (Luong et al. 2015, section 3.1, "concat").

    One matrix over the joined vectors: its left part meets every query, its right part every key
    once a batch.

    Args:
        size: width A of the hidden layer.
    """

    def __init__(self, size: PositiveInt, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size, self.query_size = size, query_size
        self.W = nn.Linear(query_size + key_size, size, bias=False)
        self.v = nn.Parameter(torch.empty(size).uniform_(-1, 1) / math.sqrt(size))

    def project_keys(self, keys: Tensor) -> Tensor:
        return linear(keys, self.W.weight[:, self.query_size :])

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return additive(linear(query, self.W.weight[:, : self.query_size]), keys, self.v)
