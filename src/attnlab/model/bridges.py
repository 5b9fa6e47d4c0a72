"""Bridges: the decoder's first state, made of the encoded source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnlab.model.encoders.encoder import Encoded
from attnlab.model.recurrence import RecurrentState, StateShape


class Bridge(nn.Module, ABC):
    """Makes the decoder's first state of the encoded source.

    A subclass defines `forward`. Its constructor takes its settings, and whichever of the run-time
    arguments it needs: `encoder_shape` and `decoder_shape` (StateShape) of the encoder's final and
    of the decoder's first state, `output_size`, the width D of the encoder's outputs, and
    `backward_size`, the width of `Encoded.backward` (0 where there is none).

    passes_source: False where the first state holds nothing of the source.
    reads_final_state: False where it does not hold the encoder's final state.
    """

    runtime_arguments: ClassVar[tuple[str, ...]] = (
        "encoder_shape",
        "decoder_shape",
        "output_size",
        "backward_size",
    )

    passes_source: bool = True
    reads_final_state: bool = True

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        """Return the first state, (L, B, H), of the shape that the decoder starts with.

        Args:
            encoded: the encoded source.
            source_mask: (B, S) bool, True at real tokens.
        """


class ZeroBridge(Bridge):
    """s_0 = 0."""

    passes_source = False
    reads_final_state = False

    def __init__(self, *, decoder_shape: StateShape) -> None:
        super().__init__()
        self.shape = decoder_shape

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        zeros = encoded.outputs.new_zeros(self.shape.layers, len(source_mask), self.shape.size)
        return RecurrentState(zeros, zeros if self.shape.has_cell else None)


class CopyBridge(Bridge):
    """s_0 = the encoder's final state, layer by layer (Sutskever 2014).

    Both sides must have the same shape.
    """

    def __init__(self, *, encoder_shape: StateShape, decoder_shape: StateShape) -> None:
        super().__init__()
        if encoder_shape != decoder_shape:
            raise ValueError(
                "the copy bridge needs equal states, but the encoder ends with "
                f"{_words(encoder_shape)} and the decoder starts with {_words(decoder_shape)}; "
                "make them equal or choose model/bridge=linear"
            )

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        return encoded.final


def _words(shape: StateShape) -> str:
    kind = "hidden and cell states" if shape.has_cell else "hidden states"
    return f"{shape.layers} layer(s) of {kind} of size {shape.size} (directions joined)"


def _check_layers(name: str, encoder: StateShape, decoder: StateShape) -> None:
    if encoder.layers != decoder.layers:
        raise ValueError(
            f"the {name} bridge maps layer to layer, but the encoder has {encoder.layers} and the "
            f"decoder {decoder.layers}; make them equal or choose model/bridge=mean"
        )


def _mapped(state: RecurrentState, hidden: nn.Linear, cell: nn.Linear | None) -> RecurrentState:
    """tanh(W h + b), and W' c + b' where there is such a map; of h, where the state has no c."""
    mapped = torch.tanh(hidden(state.hidden))  # (L, B, H)
    if cell is None:
        return RecurrentState(mapped)
    return RecurrentState(mapped, cell(state.hidden if state.cell is None else state.cell))


class LinearBridge(Bridge):
    """s_0 = tanh(W h + b), layer by layer, with h the encoder's final state.

    An LSTM decoder's cell state has a map of its own, c_0 = W' c + b', from the encoder's cell
    state, or from its hidden state where it has no other.
    """

    def __init__(self, *, encoder_shape: StateShape, decoder_shape: StateShape) -> None:
        super().__init__()
        _check_layers("linear", encoder_shape, decoder_shape)
        self.hidden = nn.Linear(encoder_shape.size, decoder_shape.size)
        self.cell: nn.Linear | None = None
        if decoder_shape.has_cell:
            self.cell = nn.Linear(encoder_shape.size, decoder_shape.size)

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        return _mapped(encoded.final, self.hidden, self.cell)


class FirstBackwardBridge(Bridge):
    """s_0 = tanh(W h_1), layer by layer, with h_1 the backward state of the first token.

    That state has read the whole source (Bahdanau et al. 2015, appendix A.2.2). An LSTM decoder's
    cell state has a map of its own, c_0 = W' c_1, from the backward cell state, or from the hidden
    state where the encoder has no other.
    """

    reads_final_state = False

    def __init__(
        self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int
    ) -> None:
        super().__init__()
        if backward_size == 0:
            raise ValueError(
                "the first_backward bridge needs an encoder with a backward direction; choose "
                "model/bridge=linear or, for a recurrent encoder, model.encoder.bidirectional=true"
            )
        _check_layers("first_backward", encoder_shape, decoder_shape)
        self.hidden = nn.Linear(backward_size, decoder_shape.size, bias=False)
        self.cell: nn.Linear | None = None
        if decoder_shape.has_cell:
            self.cell = nn.Linear(backward_size, decoder_shape.size, bias=False)

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        assert encoded.backward is not None
        return _mapped(encoded.backward, self.hidden, self.cell)


class MeanBridge(Bridge):
    """s_0 = tanh(W mean(h_1, ..., h_n) + b), the mean being that over the real source tokens.

    Where an encoder keeps some of them from the attention, the mean leaves them out, too.

    Each decoder layer has maps of its own (Sennrich et al. 2017, "Nematus", section 2). For an
    LSTM, c_0 likewise, without the tanh.
    """

    reads_final_state = False

    def __init__(self, *, output_size: int, decoder_shape: StateShape) -> None:
        super().__init__()
        self.shape = decoder_shape
        width = decoder_shape.layers * decoder_shape.size
        self.hidden = nn.Linear(output_size, width)
        self.cell = nn.Linear(output_size, width) if decoder_shape.has_cell else None

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        real = encoded.readable(source_mask).unsqueeze(2)
        mean = encoded.outputs.masked_fill(~real, 0).sum(1) / real.sum(1)  # (B, D)
        hidden = torch.tanh(self._layers(self.hidden(mean)))
        if self.cell is None:
            return RecurrentState(hidden)
        return RecurrentState(hidden, self._layers(self.cell(mean)))

    def _layers(self, states: Tensor) -> Tensor:
        """(B, L * H) -> (L, B, H)."""
        by_layer = states.unflatten(1, (self.shape.layers, self.shape.size))
        return by_layer.transpose(0, 1).contiguous()
