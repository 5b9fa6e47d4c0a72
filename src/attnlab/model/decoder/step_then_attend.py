"""Luong's decoder: step first, then look."""

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


class StepThenAttend(Decoder):
    """The query is s_t, and the context goes into the attentional hidden state (Luong et al. 2015, section 3).

    attentional_hidden_t = tanh(Wc [c_t; s_t] + b) is this decoder's readout (equation 5).

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
        self.cell = StackedCell(cell, embedding_size, hidden_size, layers, dropout)
        self.readout = Readout(value_size + hidden_size, readout_size, dropout)
        self.readout_size = readout_size
        self.state_shape = self.cell.state_shape

    def step(self, embedded: Tensor, state: RecurrentState, memory: Memory) -> tuple[StepOutput, RecurrentState]:
        assert memory.keys is not None
        # 1. Step with the last token: s_t = f(s_{t-1}, e(y_{t-1})).
        state = self.cell(self.dropout(embedded), state)
        hidden = state.hidden[-1]  # (B, H)
        # 2. Ask with the state after this step: query s_t -> context c_t.
        context, weights = self.attention(hidden.unsqueeze(1), memory.keys, memory.values, memory.mask)
        # 3. Hand [c_t; s_t] to the readout, which makes the attentional hidden state.
        features = torch.cat([context.squeeze(1), hidden], dim=-1)  # (B, F)
        return StepOutput(features, weights.squeeze(1)), state
