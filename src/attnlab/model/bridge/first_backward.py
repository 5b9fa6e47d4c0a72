"""Bahdanau's first state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.bridge.bridge import Bridge
from attnlab.model.encoder import Encoded
from attnlab.model.recurrent_state import RecurrentState, StateShape


class FirstBackwardBridge(Bridge):
    """s_0 = tanh(W h_1), layer by layer, with h_1 the backward direction's state at the first source token, where
    it has read the whole source (Bahdanau et al. 2015, appendix A.2.2).

    An LSTM decoder's cell state has a map of its own, c_0 = W' c_1, from the backward cell state, or from the hidden
    state where the encoder has no other.
    """

    def __init__(self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int) -> None:
        super().__init__()
        if backward_size == 0:
            raise ValueError(
                "the first_backward bridge needs an encoder that reads backwards; choose "
                "model.encoder.bidirectional=true or model/bridge=linear"
            )
        if encoder_shape.layers != decoder_shape.layers:
            raise ValueError(
                f"the first_backward bridge maps layer to layer, but the encoder has {encoder_shape.layers} and the "
                f"decoder {decoder_shape.layers}; make them equal or choose model/bridge=mean"
            )
        self.hidden = nn.Linear(backward_size, decoder_shape.size, bias=False)
        self.cell = nn.Linear(backward_size, decoder_shape.size, bias=False) if decoder_shape.has_cell else None

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        backward = encoded.backward
        assert backward is not None
        hidden = torch.tanh(self.hidden(backward.hidden))  # (L, B, H)
        if self.cell is None:
            return RecurrentState(hidden)
        return RecurrentState(hidden, self.cell(backward.hidden if backward.cell is None else backward.cell))
