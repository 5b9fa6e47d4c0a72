"""The cosine score."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from attnlab.model.attention.score import Score, check_equal_widths, unit


class CosineScore(Score):
    """score(s, h) = g s · h / (|s| |h|), with a learned scale g.

    Graves et al. 2014, section 3.3.1, with key strength g.

    The cosine of a zero vector, such as a pad that no encoder reads, is 0.

    Args:
        initial_scale: g at the start; with 1, no weight over S tokens could exceed e^2 / (e^2 + S -
            1).
    """

    def __init__(self, initial_scale: PositiveFloat, *, query_size: int, key_size: int) -> None:
        super().__init__()
        check_equal_widths("cosine", query_size, key_size)
        self.projected_key_size = key_size
        self.g = nn.Parameter(torch.tensor(float(initial_scale)))

    def finish_keys(self, keys: Tensor) -> Tensor:
        return unit(keys)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.g * (unit(query) @ keys.transpose(1, 2))
