"""The decoder starts from the mean of the encoder's outputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.model.bridge.bridge import Bridge
from attnlab.model.encoder import Encoded
from attnlab.model.recurrent_state import RecurrentState, StateShape


class MeanBridge(Bridge):
    """s_0 = tanh(W mean(h_1, ..., h_n) + b) over the real source tokens, with maps of its own for each decoder layer
    (Sennrich et al. 2017, "Nematus", section 2); c_0 likewise and without the tanh, for an LSTM.
    """

    def __init__(self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int) -> None:
        super().__init__()
        self.shape = decoder_shape
        width = decoder_shape.layers * decoder_shape.size
        self.hidden = nn.Linear(encoder_shape.size, width)
        self.cell = nn.Linear(encoder_shape.size, width) if decoder_shape.has_cell else None

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        real = source_mask.unsqueeze(2)
        mean = encoded.outputs.masked_fill(~real, 0).sum(1) / real.sum(1)  # (B, D)
        hidden = torch.tanh(self._layers(self.hidden(mean)))
        return RecurrentState(hidden, None if self.cell is None else self._layers(self.cell(mean)))

    def _layers(self, states: Tensor) -> Tensor:
        """(B, L * H) -> (L, B, H)."""
        return states.unflatten(1, (self.shape.layers, self.shape.size)).transpose(0, 1).contiguous()
