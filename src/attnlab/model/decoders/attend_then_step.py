"""Bahdanau's decoder: look first, then step."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.decoder import look
from attnlab.model.decoders.recurrent_decoder import RecurrentDecoder
from attnlab.model.decoders.step import DecoderState, StepOutput, Token


class AttendThenStep(RecurrentDecoder[Literal["cell", "readout", "cell_and_readout"]]):
    """Look first, then step: the query is s_{t-1} (Bahdanau et al. 2015, section 3.1).

    Args:
        context: where c_t goes: into the `cell`, the `readout`, or `cell_and_readout` as in the
            paper (equation 4).
    """

    destinations: ClassVar = {
        "cell": (True, False),
        "readout": (False, True),
        "cell_and_readout": (True, True),
    }

    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        assert self.attention is not None
        # 1. Ask with the state before this step: query s_{t-1} -> context c_t.
        context, weights, past = look(self.attention, state.recurrent.hidden[-1], state, memory)
        # 2. Step with the last token and, where it goes there, the context: s_t = f(s_{t-1},
        # [e(y_{t-1}); c_t]).
        hidden, after = self.body(token, context if self.into_cell else None, state)
        # 3. Hand state, token and, where it goes there, the context to the readout.
        output = StepOutput(hidden, context if self.into_readout else None, token.embedded, weights)
        return output, replace(after, past=past)

    def all_steps(
        self, tokens: Tensor, state: DecoderState, memory: Memory, positions: Tensor
    ) -> StepOutput:
        assert self.attention is not None
        assert self.into_readout  # else the context goes into the next cell: a step feeds back
        hidden = self.body.all_steps(tokens, None, state)
        # s_0 ... s_{T-1}
        queries = torch.cat([state.recurrent.hidden[-1].unsqueeze(1), hidden[:, :-1]], dim=1)
        context, weights = self.attention(queries, memory, positions)
        return StepOutput(hidden, context, tokens, weights)
