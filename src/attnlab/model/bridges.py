"""Bridges: the decoder's first state, made of the encoded source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnlab.model.encoder import Encoded
from attnlab.model.recurrence import RecurrentState, StateShape


class Bridge(nn.Module, ABC):
    """Makes the decoder's first state of the encoded source."""

    runtime_arguments: ClassVar[tuple[str, ...]] = (
        "encoder_shape",
        "decoder_shape",
        "backward_size",
    )

    passes_source = True  # False: the first state holds nothing of the source

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        """The encoded source and its mask (B, S) -> first state (L, B, H) of the decoder's kind."""


class ZeroBridge(Bridge):
    """s_0 = 0."""

    passes_source = False

    def __init__(
        self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int
    ) -> None:
        super().__init__()
        self.shape = decoder_shape

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        zeros = encoded.outputs.new_zeros(self.shape.layers, len(source_mask), self.shape.size)
        return RecurrentState(zeros, zeros if self.shape.has_cell else None)


class CopyBridge(Bridge):
    """s_0 = the encoder's final state, layer by layer (Sutskever 2014); both sides must have the
    same shape.
    """

    def __init__(
        self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int
    ) -> None:
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
    c = state.hidden if state.cell is None else state.cell
    # (L, B, H)
    return RecurrentState(torch.tanh(hidden(state.hidden)), None if cell is None else cell(c))


class LinearBridge(Bridge):
    """s_0 = tanh(W h + b), layer by layer, with h the encoder's final state, its directions merged.

    An LSTM decoder's cell state has a map of its own, c_0 = W' c + b', from the encoder's cell
    state, or from its hidden state where it has no other.
    """

    def __init__(
        self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int
    ) -> None:
        super().__init__()
        _check_layers("linear", encoder_shape, decoder_shape)
        self.hidden = nn.Linear(encoder_shape.size, decoder_shape.size)
        self.cell = (
            nn.Linear(encoder_shape.size, decoder_shape.size) if decoder_shape.has_cell else None
        )

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        return _mapped(encoded.final, self.hidden, self.cell)


class FirstBackwardBridge(Bridge):
    """s_0 = tanh(W h_1), layer by layer, with h_1 the backward direction's state at the first
    source token, where
    it has read the whole source (Bahdanau et al. 2015, appendix A.2.2).

    An LSTM decoder's cell state has a map of its own, c_0 = W' c_1, from the backward cell state,
    or from the hidden state where the encoder has no other.
    """

    def __init__(
        self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int
    ) -> None:
        super().__init__()
        if backward_size == 0:
            raise ValueError(
                "the first_backward bridge needs an encoder that reads backwards; choose "
                "model.encoder.bidirectional=true or model/bridge=linear"
            )
        _check_layers("first_backward", encoder_shape, decoder_shape)
        self.hidden = nn.Linear(backward_size, decoder_shape.size, bias=False)
        self.cell = (
            nn.Linear(backward_size, decoder_shape.size, bias=False)
            if decoder_shape.has_cell
            else None
        )

    def forward(self, encoded: Encoded, source_mask: Tensor) -> RecurrentState:
        assert encoded.backward is not None
        return _mapped(encoded.backward, self.hidden, self.cell)


class MeanBridge(Bridge):
    """s_0 = tanh(W mean(h_1, ..., h_n) + b) over the real source tokens, with maps of its own for
    each decoder layer (Sennrich et al. 2017, "Nematus", section 2); c_0 likewise and without the
    tanh, for an LSTM.
    """

    def __init__(
        self, *, encoder_shape: StateShape, decoder_shape: StateShape, backward_size: int
    ) -> None:
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
        return (
            states.unflatten(1, (self.shape.layers, self.shape.size)).transpose(0, 1).contiguous()
        )
