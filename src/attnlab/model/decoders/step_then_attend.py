"""Luong's decoder: step first, then look."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from torch import Tensor

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.decoder import look
from attnlab.model.decoders.recurrent_decoder import RecurrentDecoder
from attnlab.model.decoders.step import DecoderState, StepOutput, Token


class StepThenAttend(
    RecurrentDecoder[Literal["readout", "previous_in_cell", "readout_and_previous_in_cell"]]
):
    """Step first, then look: the query is s_t (Luong et al. 2015, section 3).

    Args:
        context: where c_t goes: into the `readout` as in the paper (equation 5); or, as c_t is
            unknown before the cell has stepped, into the cell of the next step, `previous_in_cell`;
            or `readout_and_previous_in_cell`. c_0 is zero.
    """

    destinations: ClassVar = {
        "readout": (False, True),
        "previous_in_cell": (True, False),
        "readout_and_previous_in_cell": (True, True),
    }

    @property
    def carries_context(self) -> bool:
        return self.into_cell

    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        assert self.attention is not None
        # 1. Step with the last token and, where it goes there, c_{t-1}: s_t = f(s_{t-1},
        # [e(y_{t-1}); c_{t-1}]).
        hidden, after = self.body(token, state.context, state)
        # 2. Ask with the state after this step: query s_t -> context c_t.
        context, weights, past = look(self.attention, hidden, state, memory)
        # 3. Hand state, token and, where it goes there, the context to the readout.
        output = StepOutput(hidden, context if self.into_readout else None, token.embedded, weights)
        # 4. Store what the next step reads.
        if self.carries_context:
            after = replace(after, context=context)
        return output, replace(after, past=past)

    def all_steps(
        self, tokens: Tensor, state: DecoderState, memory: Memory, positions: Tensor
    ) -> StepOutput:
        assert self.attention is not None
        assert self.into_readout  # else the context goes into the next cell: a step feeds back
        hidden = self.body.all_steps(tokens, None, state)
        context, weights = self.attention(hidden, memory, positions)
        return StepOutput(hidden, context, tokens, weights)
