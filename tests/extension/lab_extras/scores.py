"""An attention score."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from attnlab.model.attention.score import Score


class EuclideanScore(Score):
    """score(s, h) = -||s - W h||² / temperature: near keys score high.

    Args:
        temperature: above 1, the weights are more alike.
    """

    def __init__(self, temperature: PositiveFloat, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.temperature = temperature
        self.W = nn.Linear(key_size, query_size, bias=False)
        self.projected_key_size = query_size

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.W(keys)  # (B, S, H), once a batch

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return -torch.cdist(query, keys).square() / self.temperature  # (B, T, S)
