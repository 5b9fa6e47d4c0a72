"""A learned map between the two states."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.bridge.bridge import Bridge
from attnlab.model.encoder import Encoded
from attnlab.model.recurrent_state import RecurrentState, StateShape


class LinearBridge(Bridge):
    """s_0 = tanh(W h + b), layer by layer, with h the encoder's final state, its directions merged.

    An LSTM decoder's cell state has a map of its own, c_0 = W' c + b', from the encoder's cell state, or from its
    hidden state where it has no other.
    """

    def __init__(self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int) -> None:
        super().__init__()
        if encoder_shape.layers != decoder_shape.layers:
            raise ValueError(
                f"the linear bridge maps layer to layer, but the encoder has {encoder_shape.layers} and the decoder "
                f"{decoder_shape.layers}; make them equal or choose model/bridge=mean"
            )
        self.hidden = nn.Linear(encoder_shape.size, decoder_shape.size)
        self.cell = nn.Linear(encoder_shape.size, decoder_shape.size) if decoder_shape.has_cell else None

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        final = encoded.final
        hidden = torch.tanh(self.hidden(final.hidden))  # (L, B, H)
        if self.cell is None:
            return RecurrentState(hidden)
        return RecurrentState(hidden, self.cell(final.hidden if final.cell is None else final.cell))
