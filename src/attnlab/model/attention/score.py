"""What every score is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Score(nn.Module, ABC):
    """How well each query goes with each key, before the softmax.

    keys_size: width A of the projected keys.
    by_position: True where the query is compared with positions; `project_keys` is then given positions (B, S).
    """

    keys_size: int
    by_position = False

    def project_keys(self, keys: Tensor) -> Tensor:
        """What depends on the keys alone, computed once a batch: keys (B, S, D) -> projected keys (B, S, A)."""
        return keys

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """query (B, T, H) and projected keys (B, S, A) -> scores (B, T, S)."""


def check_equal_widths(name: str, query_size: int, key_size: int) -> None:
    """Raise ValueError where a score without weights would have to compare vectors of different widths."""
    if query_size != key_size:
        raise ValueError(
            f"the {name} score needs a query and keys of one width, but the query has {query_size} and the encoder's "
            f"output {key_size}; make them equal, or choose model/projection=linear or model/attention=general"
        )
