"""Bahdanau's decoder: look first, then step."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from attnlab.config.part import Part
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.attention.memory import Memory
from attnlab.model.decoder.body import DecoderBody
from attnlab.model.decoder.decoder import Decoder, StepOutput, look, needs_attention, remembers
from attnlab.model.decoder.decoder_state import DecoderState
from attnlab.model.input_feeding.input_feeding import InputFeeding
from attnlab.model.readout.readout import Readout


class AttendThenStep(Decoder):
    """The query is s_{t-1} (Bahdanau et al. 2015, section 3.1).

    Args:
        context: where c_t goes: into the `cell`, the `readout`, or `cell_and_readout` as in the paper (equation 4).
        dropout: on the embeddings.
        layer_dropout: between layers.
    """

    def __init__(
        self,
        cell: Literal["rnn", "gru", "lstm"],
        embedding_size: PositiveInt,
        hidden_size: PositiveInt,
        layers: PositiveInt,
        dropout: Annotated[float, Field(ge=0, lt=1)],
        layer_dropout: Annotated[float, Field(ge=0, lt=1)],
        context: Literal["cell", "readout", "cell_and_readout"],
        *,
        mechanism: Mechanism | None,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        value_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        self.into_cell, self.into_readout = context != "readout", context != "cell"
        self.attention = needs_attention(mechanism).build(hidden_size, value_size)
        self.body = DecoderBody(
            cell,
            embedding_size,
            hidden_size,
            layers,
            dropout,
            layer_dropout,
            into_cell=value_size if self.into_cell else 0,
            into_readout=value_size if self.into_readout else 0,
            readout=readout,
            input_feeding=input_feeding,
            target_vocabulary_size=target_vocabulary_size,
        )

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[StepOutput, DecoderState]:
        assert self.attention is not None
        # 1. Ask with the state before this step: query s_{t-1} -> context c_t.
        context, weights = look(self.attention, state.recurrent.hidden[-1], state, memory)
        # 2. Step with the last token and, where it goes there, the context: s_t = f(s_{t-1}, [e(y_{t-1}); c_t]).
        hidden, token, after = self.body(embedded, context if self.into_cell else None, state)
        # 3. Hand state, token and, where it goes there, the context to the readout.
        output = StepOutput(hidden, context if self.into_readout else None, token, weights)
        return output, after if state.coverage is None else replace(after, coverage=state.coverage + weights)

    @property
    def feeds_back(self) -> bool:
        return self.into_cell or remembers(self.body, self.attention)

    def all_steps(self, embedded: Tensor, state: DecoderState, memory: Memory, positions: Tensor) -> StepOutput:
        assert self.attention is not None
        hidden, tokens = self.body.all_steps(embedded, None, state)
        queries = torch.cat([state.recurrent.hidden[-1].unsqueeze(1), hidden[:, :-1]], dim=1)  # s_0 ... s_{T-1}
        context, weights = self.attention(queries, memory, positions)
        return StepOutput(hidden, context, tokens, weights)
