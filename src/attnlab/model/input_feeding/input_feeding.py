"""What every input feeding is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class InputFeeding(nn.Module, ABC):
    """Makes the vector that is joined to the next step's input; before the first step it is zero.

    size: width F of that vector.
    """

    size: int

    @abstractmethod
    def forward(self, readout: Tensor, output: nn.Module, embedding: nn.Embedding) -> Tensor:
        """readout (B, R) of a step, the output layer, the target embedding -> what the next step is fed, (B, F)."""
