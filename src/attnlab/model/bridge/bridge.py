"""What every bridge is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from attnlab.model.encoder import Encoded
from attnlab.model.recurrent_state import RecurrentState


class Bridge(nn.Module, ABC):
    """Makes the decoder's first state of the encoded source."""

    tells_source = True  # False: nothing of the source is left in it

    @abstractmethod
    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        """The encoded source and its mask (B, S) -> first state (L, B, H) of the decoder's kind."""
