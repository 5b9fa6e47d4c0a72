"""What every readout is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Readout(nn.Module, ABC):
    """Joins what a step knows. It stands outside the step, so that training can apply it to all steps at once.

    size: width R of its output.
    """

    size: int

    @abstractmethod
    def forward(self, hidden: Tensor, context: Tensor | None, token: Tensor) -> Tensor:
        """
        Args:
            hidden: s_t (..., H).
            context: c_t (..., D), None where the context does not go into the readout.
            token: e(y_{t-1}) (..., E), the embedded last token.

        Returns:
            (..., R).
        """
