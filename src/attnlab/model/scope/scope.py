"""What every scope is, and the window it opens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class Window:
    """What may be seen of the source.

    inside: None where all of it may.
    emphasis: factors of the weights after they were normalised; None for none.
    renormalise: whether the weights are divided by their sum after that.
    """

    inside: Tensor | None = None  # (B, T, S) bool
    emphasis: Tensor | None = None  # (B, T, S)
    renormalise: bool = False

    def reweigh(self, weights: Tensor) -> Tensor:
        """Weights (B, T, S), multiplied by the emphasis."""
        if self.emphasis is None:
            return weights
        weights = weights * self.emphasis
        return weights / weights.sum(-1, keepdim=True) if self.renormalise else weights


class Scope(nn.Module, ABC):
    """Opens a window on the source at every step. Positions count real tokens, so that padding moves none."""

    @abstractmethod
    def forward(self, query: Tensor, t: Tensor, positions: Tensor, lengths: Tensor) -> Window:
        """
        Args:
            query: (B, T, H).
            t: (B, T), the position of each query in the target.
            positions: (B, S), the position of each source token; pads come behind the last real one.
            lengths: (B,), real source tokens.
        """
