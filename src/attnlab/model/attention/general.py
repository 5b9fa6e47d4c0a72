"""The general score."""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.model.attention.score import Score


class GeneralScore(Score):
    """score(s, h) = s · W h (Luong et al. 2015, section 3.1, "general")."""

    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size = query_size
        self.W = nn.Linear(key_size, query_size, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        return self.W(keys)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)
