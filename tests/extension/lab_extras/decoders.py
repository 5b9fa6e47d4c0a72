"""A decoder: when the attention looks, and where its context goes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from torch import Tensor, nn

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.decoder import look
from attnlab.model.decoders.recurrent_decoder import RecurrentDecoder
from attnlab.model.decoders.step import DecoderState, StepOutput, Token


class GatedDecoder(RecurrentDecoder[Literal["readout"]]):
    """Step, look with s_t, and let the state open the context: c'_t = sigmoid(W s_t) * c_t.

    It defines its step alone; attnlab takes the steps of a training one after the other.

    Args:
        context: where c'_t goes, into the readout.
    """

    destinations: ClassVar = {"readout": (False, True)}

    def __init__(self, *, hidden_size: int, value_size: int, **others: object) -> None:
        super().__init__(hidden_size=hidden_size, value_size=value_size, **others)
        self.gate = nn.Linear(hidden_size, value_size)

    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        assert self.attention is not None
        # 1. Step with the last token: s_t = f(s_{t-1}, e(y_{t-1})).
        hidden, after = self.body(token, None, state)
        # 2. Look with the state after this step.
        context, weights, past = look(self.attention, hidden, state, memory)
        # 3. Open the context as far as the state wants it.
        gated: Tensor = self.gate(hidden).sigmoid() * context
        output = StepOutput(hidden, gated, token.embedded, weights)
        return output, replace(after, past=past)
