"""RecurrentDecoder: the base class of the decoders that remember the target by cells."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from attnlab.config.part import Part
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.decoders.body import DecoderBody
from attnlab.model.decoders.cells import StackedCell
from attnlab.model.decoders.decoder import ContextT, Decoder
from attnlab.model.dropout import Rate, dropout_of_words
from attnlab.model.input_feeding import InputFeeding
from attnlab.model.readouts import Readout


class RecurrentDecoder(Decoder[ContextT]):
    """A stack of recurrent cells, one token a step.

    A constructor of a subclass takes its own settings and hands the others, and all run-time
    arguments, on to this one, best as `**others`.

    body: its layers too.

    Args:
        cell: the kind of the recurrent layers.
        embedding_size: width E of the token embeddings.
        hidden_size: units H of each layer.
        layers: L.
        word_dropout: of whole words, their embeddings.
        dropout: on the embeddings.
        layer_dropout: between layers.
        context: where the context goes.
    """

    body: DecoderBody

    def __init__(
        self,
        cell: Literal["rnn", "gru", "lstm"],
        embedding_size: PositiveInt,
        hidden_size: PositiveInt,
        layers: PositiveInt,
        word_dropout: Rate,
        dropout: Rate,
        layer_dropout: Rate,
        context: ContextT,
        *,
        mechanism: Mechanism | None,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        value_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__(context, mechanism)
        self.attention = None if mechanism is None else mechanism.build(hidden_size, value_size)
        self.body = DecoderBody(
            cell,
            embedding_size,
            hidden_size,
            layers,
            dropout_of_words(word_dropout, dropout),
            layer_dropout,
            into_cell=value_size if self.into_cell else 0,
            into_readout=value_size if self.into_readout else 0,
            readout=readout,
            input_feeding=input_feeding,
            target_vocabulary_size=target_vocabulary_size,
        )
        if self.steps_twice:
            self.second_cell = StackedCell(cell, value_size, hidden_size, layers, layer_dropout)
