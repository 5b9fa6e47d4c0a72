"""The scaled dot score."""

from __future__ import annotations

import math

from torch import Tensor

from attnlab.model.attention.score import Score, check_equal_widths


class ScaledDotScore(Score):
    """score(s, h) = s · h / sqrt(n), with n the width of both (Vaswani et al. 2017, equation 1)."""

    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        check_equal_widths("scaled dot", query_size, key_size)
        self.projected_key_size = key_size

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2) / math.sqrt(query.shape[-1])
