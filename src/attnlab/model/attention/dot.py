"""The dot score."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.attention.score import Score, check_equal_widths


class DotScore(Score):
    """score(s, h) = s · h (Luong et al. 2015, section 3.1, "dot")."""

    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        check_equal_widths("dot", query_size, key_size)
        self.projected_key_size = key_size

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)
