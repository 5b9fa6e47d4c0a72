"""What every score is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Score(nn.Module, ABC):
    """How well each query goes with each key, before the softmax."""

    def project_keys(self, keys: Tensor) -> Tensor:
        """What depends on the keys alone, computed once a batch: keys (B, S, D) -> projected keys (B, S, A)."""
        return keys

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """query (B, T, H) and projected keys (B, S, A) -> scores (B, T, S)."""
