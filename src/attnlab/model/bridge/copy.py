"""The decoder goes on from where the encoder stopped."""

from __future__ import annotations

from torch import Tensor

from attnlab.model.bridge.bridge import Bridge
from attnlab.model.encoder import Encoded
from attnlab.model.recurrent_state import RecurrentState, StateShape


class CopyBridge(Bridge):
    """s_0 = the encoder's final state, layer by layer (Sutskever 2014); both sides must have the same shape."""

    def __init__(self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int) -> None:
        super().__init__()
        if encoder_shape != decoder_shape:
            raise ValueError(
                f"the copy bridge needs equal states, but the encoder ends with {_words(encoder_shape)} and the "
                f"decoder starts with {_words(decoder_shape)}; make them equal or choose model/bridge=linear"
            )

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        return encoded.final


def _words(shape: StateShape) -> str:
    kind = "hidden and cell states" if shape.has_cell else "hidden states"
    return f"{shape.layers} layer(s) of {kind} of size {shape.size} (directions joined)"
