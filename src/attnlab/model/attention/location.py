"""Luong's location score."""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.errors import ExperimentError
from attnlab.model.attention.score import Score


class LocationScore(Score):
    """score(s, i) = (W s)_i, for the token at position i, whatever it is.

    Luong et al. 2015, equation 8.

    Positions are counted over real tokens from the first one on, `<eos>` included.

    Args:
        max_length: rows of W, the longest source that can be read.
    """

    by_position = True
    longest_source = "max_length"

    def __init__(self, max_length: PositiveInt, *, query_size: int, key_size: int) -> None:
        super().__init__()
        self.projected_key_size = 1
        self.max_length = max_length
        self.W = nn.Linear(query_size, max_length, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """Positions (B, S) as they are; raises ExperimentError where one has no row in W."""
        # Only where pads do not settle it: reading a number from a GPU waits for it.
        if keys.shape[1] > self.max_length and (longest := int(keys.max()) + 1) > self.max_length:
            raise ExperimentError(
                f"model.attention.max_length is {self.max_length}, but a source of {longest} "
                "tokens (`<eos>` included) was met; raise it and train anew, or give shorter "
                "sources"
            )
        return keys

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        by_position = self.W(query)  # (B, T, max_length)
        return by_position.gather(2, keys.unsqueeze(1).expand(-1, query.shape[1], -1))
