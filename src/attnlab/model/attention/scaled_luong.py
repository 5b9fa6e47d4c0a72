"""The general score with a learned scale."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.attention.score import Score


class ScaledLuongScore(Score):
    """score(s, h) = g (s · W h), with a learned scale g that starts at 1.

    "scaled_luong" of tensorflow/nmt.
    """

    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size = query_size
        self.W = nn.Linear(key_size, query_size, bias=False)
        self.g = nn.Parameter(torch.ones(()))

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.W(keys)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.g * (query @ keys.transpose(1, 2))
