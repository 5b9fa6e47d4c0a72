"""The decoder starts from zero, and knows the source by attention alone."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.bridge.bridge import Bridge
from attnlab.model.encoder import Encoded
from attnlab.model.recurrent_state import RecurrentState, StateShape


class ZeroBridge(Bridge):
    """s_0 = 0."""

    tells_source = False

    def __init__(self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int) -> None:
        super().__init__()
        self.shape = decoder_shape

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        zeros = encoded.outputs.new_zeros(self.shape.layers, len(source_mask), self.shape.size)
        return RecurrentState(zeros, zeros if self.shape.has_cell else None)
