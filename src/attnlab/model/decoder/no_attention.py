"""The decoder before attention: one context vector for the whole sentence."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt
from torch import Tensor

from attnlab.config.part import Part
from attnlab.model.attention.mechanism import Mechanism
from attnlab.model.attention.memory import Memory
from attnlab.model.decoder.body import DecoderBody
from attnlab.model.decoder.decoder import Decoder, StepOutput, remembers
from attnlab.model.decoder.decoder_state import DecoderState
from attnlab.model.input_feeding.input_feeding import InputFeeding
from attnlab.model.readout.readout import Readout


class NoAttention(Decoder):
    """The source is known by the encoder's final state alone.

    Args:
        context: `initial_state` hands it over once, through the bridge (Sutskever et al. 2014, section 2);
            `every_step` also gives it to the cell and the readout at each step (Cho et al. 2014, section 2.2).
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
        context: Literal["initial_state", "every_step"],
        *,
        mechanism: Mechanism | None,
        readout: Part[Readout],
        input_feeding: Part[InputFeeding] | None,
        value_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__()
        if mechanism is not None:
            raise ValueError(
                f"this decoder never looks back at the source, but model.attention is "
                f"{mechanism.score.target.__name__}; choose model/attention=none, or a model/decoder that attends"
            )
        self.attention = None
        self.reads_memory = context == "every_step"
        self.body = DecoderBody(
            cell,
            embedding_size,
            hidden_size,
            layers,
            dropout,
            layer_dropout,
            into_cell=value_size if self.reads_memory else 0,
            into_readout=value_size if self.reads_memory else 0,
            readout=readout,
            input_feeding=input_feeding,
            target_vocabulary_size=target_vocabulary_size,
        )

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[StepOutput, DecoderState]:
        # 1. The context vector, where every step is given it.
        context = memory.for_rows(len(embedded)).summary if self.reads_memory else None
        # 2. Step with the last token: s_t = f(s_{t-1}, [e(y_{t-1}); c]).
        hidden, token, after = self.body(embedded, context, state)
        # 3. Hand state, context and token to the readout.
        return StepOutput(hidden, context, token, None), after

    @property
    def feeds_back(self) -> bool:
        return remembers(self.body, None)

    def all_steps(self, embedded: Tensor, state: DecoderState, memory: Memory, positions: Tensor) -> StepOutput:
        context = memory.summary.unsqueeze(1).expand(-1, embedded.shape[1], -1) if self.reads_memory else None
        hidden, tokens = self.body.all_steps(embedded, context, state)
        return StepOutput(hidden, context, tokens, None)
