"""Query and keys brought to one width before they are compared."""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.config.part import Part
from attnlab.model.attention.score import Score
from attnlab.model.repeated_linear import RepeatedLinear


class LinearProjection(Score):
    """score(P s, R h): any score, over linear projections of query and keys to a common width (Vaswani et al. 2017,
    section 3.2.2, for one head).

    Args:
        size: the common width.
    """

    def __init__(self, size: PositiveInt, *, score: Part[Score], query_size: int, key_size: int) -> None:
        super().__init__()
        self.P = RepeatedLinear(query_size, size, bias=False)
        self.R = nn.Linear(key_size, size, bias=False)
        self.score: Score = score(query_size=size, key_size=size)
        if self.score.by_position:
            raise ValueError("the location score has no keys to project; choose model/projection=none")
        self.keys_size = self.score.keys_size

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.score.project_keys(self.R(keys))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.score(self.P(query), keys)
