"""The decoder without attention: one context vector for the whole sentence."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import Tensor

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.recurrent_decoder import RecurrentDecoder
from attnlab.model.decoders.step import DecoderState, StepOutput, Token


class NoAttention(RecurrentDecoder[Literal["initial_state", "every_step"]]):
    """Know the source by the encoder's final state alone, one vector for the whole sentence.

    Args:
        context: `initial_state` passes that vector once, through the bridge (Sutskever et al. 2014,
            section 2); `every_step` also gives it to the cell and the readout at each step (Cho et
            al. 2014, section 2.2).
    """

    destinations: ClassVar = {"initial_state": (False, False), "every_step": (True, True)}
    attends = False

    @property
    def reads_memory(self) -> bool:
        return self.into_cell

    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        # 1. The context vector, where every step is given it.
        context = memory.for_rows(len(token.embedded)).summary if self.into_cell else None
        # 2. Step with the last token: s_t = f(s_{t-1}, [e(y_{t-1}); c]).
        hidden, after = self.body(token, context, state)
        # 3. Hand state, context and token to the readout.
        return StepOutput(hidden, context, token.embedded, None), after

    def all_steps(
        self, tokens: Tensor, state: DecoderState, memory: Memory, positions: Tensor
    ) -> StepOutput:
        context = (
            memory.summary.unsqueeze(1).expand(-1, tokens.shape[1], -1) if self.into_cell else None
        )
        hidden = self.body.all_steps(tokens, context, state)
        return StepOutput(hidden, context, tokens, None)
