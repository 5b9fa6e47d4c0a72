"""The decoder before attention: one context vector for the whole sentence."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from attnlab.batch import PAD
from attnlab.composition.part import Part
from attnlab.model.attention.score import Score
from attnlab.model.decoder.decoder import Decoder, StepOutput
from attnlab.model.decoder.memory import Memory
from attnlab.model.decoder.readout import Readout
from attnlab.model.decoder.stacked_cell import StackedCell
from attnlab.model.recurrent_state import RecurrentState


class NoAttention(Decoder):
    """The source is known by the encoder's final state alone.

    Args:
        context: `initial_state` hands it over once, through the bridge (Sutskever et al. 2014, section 2);
            `every_step` also gives it to the cell and the readout at each step (Cho et al. 2014, section 2.2).
        dropout: on the embeddings, between layers and on the readout.
    """

    def __init__(
        self,
        cell: Literal["rnn", "gru", "lstm"],
        embedding_size: PositiveInt,
        hidden_size: PositiveInt,
        readout_size: PositiveInt,
        layers: PositiveInt,
        dropout: Annotated[float, Field(ge=0, lt=1)],
        context: Literal["initial_state", "every_step"],
        *,
        score: Part[Score] | None,
        value_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        if score is not None:
            raise ValueError(
                f"this decoder never looks back at the source, but model.attention is {score.target.__name__}; choose "
                "model/attention=none, or a model/decoder that attends"
            )
        self.embedding = nn.Embedding(target_vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        self.attention = None
        self.at_every_step = self.reads_memory = context == "every_step"
        extra = value_size if self.at_every_step else 0
        self.cell = StackedCell(cell, embedding_size + extra, hidden_size, layers, dropout)
        self.readout = Readout(hidden_size + embedding_size + extra, readout_size, dropout)
        self.readout_size = readout_size
        self.state_shape = self.cell.state_shape

    def step(self, embedded: Tensor, state: RecurrentState, memory: Memory) -> tuple[StepOutput, RecurrentState]:
        # 1. The last token, beside the context vector where every step is given it.
        context = [memory.summary] if self.at_every_step else []
        embedded = self.dropout(embedded)
        # 2. Step: s_t = f(s_{t-1}, [e(y_{t-1}); c]).
        state = self.cell(torch.cat([embedded, *context], dim=-1), state)
        # 3. Hand state, token and context to the readout.
        return StepOutput(torch.cat([state.hidden[-1], embedded, *context], dim=-1), None), state
