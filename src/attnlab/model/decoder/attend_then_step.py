"""Bahdanau's decoder: look first, then step."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from attnlab.batch import PAD
from attnlab.composition.part import Part
from attnlab.model.attention.attention import Attention
from attnlab.model.attention.score import Score
from attnlab.model.decoder.decoder import Decoder, StepOutput
from attnlab.model.decoder.memory import Memory
from attnlab.model.decoder.readout import Readout
from attnlab.model.decoder.stacked_cell import StackedCell
from attnlab.model.recurrent_state import RecurrentState


class AttendThenStep(Decoder):
    """The query is s_{t-1}, and the context goes into the cell (Bahdanau et al. 2015, section 3.1, equation 4).

    The readout reads [s_t; c_t; e(y_{t-1})], the three things of the paper's output layer g.

    Args:
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
        *,
        score: Part[Score] | None,
        value_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        if score is None:
            raise ValueError(
                "this decoder asks an attention at every step, but model.attention is null; choose a "
                "model/attention, or model/decoder=no_attention"
            )
        self.embedding = nn.Embedding(target_vocabulary_size, embedding_size, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        self.attention: Attention = Attention(score(query_size=hidden_size, key_size=value_size))
        self.cell = StackedCell(cell, embedding_size + value_size, hidden_size, layers, dropout)
        self.readout = Readout(hidden_size + value_size + embedding_size, readout_size, dropout)
        self.readout_size = readout_size
        self.state_shape = self.cell.state_shape

    def step(self, embedded: Tensor, state: RecurrentState, memory: Memory) -> tuple[StepOutput, RecurrentState]:
        assert memory.keys is not None
        # 1. Ask with the state before this step: query s_{t-1}.
        query = state.hidden[-1].unsqueeze(1)  # (B, 1, H)
        # 2. Average the values by the attention weights: context c_t.
        context, weights = self.attention(query, memory.keys, memory.values, memory.mask)
        context = context.squeeze(1)  # (B, D)
        # 3. Step with the last token and the context: s_t = f(s_{t-1}, [e(y_{t-1}); c_t]).
        embedded = self.dropout(embedded)
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        # 4. Hand state, context and token to the readout.
        features = torch.cat([state.hidden[-1], context, embedded], dim=-1)  # (B, F)
        return StepOutput(features, weights.squeeze(1)), state
