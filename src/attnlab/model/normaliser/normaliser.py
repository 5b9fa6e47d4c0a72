"""What every normaliser is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor


class Normaliser(ABC):
    """Makes weights of scores."""

    @abstractmethod
    def __call__(self, scores: Tensor) -> Tensor:
        """scores (..., S), minus infinity where nothing may be seen -> weights (..., S) that are 0 there and sum to 1.

        Weights are at least in float32: in half precision those of a long sentence would not sum to 1.
        """
