"""The dot score."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.attention.score import Score


class DotScore(Score):
    """score(s, h) = s · h (Luong et al. 2015, section 3.1, "dot")."""

    def __init__(self, *, query_size: int, key_size: int) -> None:
        super().__init__()
        if query_size != key_size:
            raise ValueError(
                f"the dot score needs a query and keys of one width, but the decoder's state has {query_size} and the "
                f"encoder's output {key_size}; make them equal or choose model/attention=general"
            )

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)
