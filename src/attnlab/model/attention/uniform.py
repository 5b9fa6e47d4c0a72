"""The uniform score."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.attention.score import Score


class UniformScore(Score):
    """score(s, i) = 0: the context is the mean of the values.

    Wiegreffe and Pinter 2019, section 3.2.
    """

    by_position = True  # it reads no keys

    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size = 1

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query.new_zeros(len(query), query.shape[1], keys.shape[1])
