"""Luong's decoder: step first, then look."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

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


class StepThenAttend(Decoder):
    """The query is s_t (Luong et al. 2015, section 3).

    Args:
        context: where c_t goes: into the `readout` as in the paper (equation 5); or, as c_t is not known before the
            cell has stepped, into the cell of the next step, `previous_in_cell`; or
            `readout_and_previous_in_cell`. c_0 is zero.
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
        context: Literal["readout", "previous_in_cell", "readout_and_previous_in_cell"],
        *,
        mechanism: Mechanism | None,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        value_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        self.carries_context, self.into_readout = context != "readout", context != "previous_in_cell"
        self.attention = needs_attention(mechanism).build(hidden_size, value_size)
        self.body = DecoderBody(
            cell,
            embedding_size,
            hidden_size,
            layers,
            dropout,
            layer_dropout,
            into_cell=value_size if self.carries_context else 0,
            into_readout=value_size if self.into_readout else 0,
            readout=readout,
            input_feeding=input_feeding,
            target_vocabulary_size=target_vocabulary_size,
        )

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[StepOutput, DecoderState]:
        assert self.attention is not None
        # 1. Step with the last token and, where it goes there, c_{t-1}: s_t = f(s_{t-1}, [e(y_{t-1}); c_{t-1}]).
        hidden, token, after = self.body(embedded, state.context, state)
        # 2. Ask with the state after this step: query s_t -> context c_t.
        context, weights = look(self.attention, hidden, state, memory)
        # 3. Hand state, token and, where it goes there, the context to the readout.
        output = StepOutput(hidden, context if self.into_readout else None, token, weights)
        # 4. Keep what the next step reads.
        if self.carries_context:
            after = replace(after, context=context)
        return output, after if state.coverage is None else replace(after, coverage=state.coverage + weights)

    @property
    def feeds_back(self) -> bool:
        return self.carries_context or remembers(self.body, self.attention)

    def all_steps(self, embedded: Tensor, state: DecoderState, memory: Memory, positions: Tensor) -> StepOutput:
        assert self.attention is not None
        hidden, tokens = self.body.all_steps(embedded, None, state)
        context, weights = self.attention(hidden, memory, positions)
        return StepOutput(hidden, context, tokens, weights)
