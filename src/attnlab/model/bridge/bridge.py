"""What every bridge is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import nn

from attnlab.model.recurrent_state import RecurrentState


class Bridge(nn.Module, ABC):
    """Makes the decoder's first state from the encoder's final state."""

    tells_source = True  # False: nothing of the final state is left in it

    @abstractmethod
    def forward(self, final: RecurrentState) -> RecurrentState:
        """final state (L, B, D) -> first state (L, B, H) of the decoder's kind."""
