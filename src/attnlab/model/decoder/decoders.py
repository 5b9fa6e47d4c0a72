"""The decoders: when the attention looks, and where its context goes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from attnlab.model.attention.memory import Memory
from attnlab.model.decoder.decoder import (
    Decoder,
    DecoderState,
    StepOutput,
    Token,
    look,
    with_coverage,
)


class AttendThenStep(Decoder[Literal["cell", "readout", "cell_and_readout"]]):
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
        context, weights = look(self.attention, state.recurrent.hidden[-1], state, memory)
        # 2. Step with the last token and, where it goes there, the context: s_t = f(s_{t-1},
        # [e(y_{t-1}); c_t]).
        hidden, after = self.body(token, context if self.into_cell else None, state)
        # 3. Hand state, token and, where it goes there, the context to the readout.
        output = StepOutput(hidden, context if self.into_readout else None, token.embedded, weights)
        return output, with_coverage(after, weights)

    def all_steps(
        self, tokens: Tensor, state: DecoderState, memory: Memory, positions: Tensor
    ) -> StepOutput:
        assert self.attention is not None
        hidden = self.body.all_steps(tokens, None, state)
        # s_0 ... s_{T-1}
        queries = torch.cat([state.recurrent.hidden[-1].unsqueeze(1), hidden[:, :-1]], dim=1)
        context, weights = self.attention(queries, memory, positions)
        return StepOutput(hidden, context, tokens, weights)


class StepThenAttend(
    Decoder[Literal["readout", "previous_in_cell", "readout_and_previous_in_cell"]]
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
        context, weights = look(self.attention, hidden, state, memory)
        # 3. Hand state, token and, where it goes there, the context to the readout.
        output = StepOutput(hidden, context if self.into_readout else None, token.embedded, weights)
        # 4. Store what the next step reads.
        if self.carries_context:
            after = replace(after, context=context)
        return output, with_coverage(after, weights)

    def all_steps(
        self, tokens: Tensor, state: DecoderState, memory: Memory, positions: Tensor
    ) -> StepOutput:
        assert self.attention is not None
        hidden = self.body.all_steps(tokens, None, state)
        context, weights = self.attention(hidden, memory, positions)
        return StepOutput(hidden, context, tokens, weights)


class Conditional(Decoder[Literal["cell", "cell_and_readout"]]):
    """Step, look, step again: the query is s'_t, halfway between s_{t-1} and s_t.

    The conditional GRU of Sennrich et al. 2017, "Nematus", section 2. The second cell is of the
    same kind and depth.

    Args:
        context: c_t goes into the second `cell` (nmtpy), or into the readout too
            (`cell_and_readout`, Nematus).
    """

    destinations: ClassVar = {"cell": (False, False), "cell_and_readout": (False, True)}
    steps_twice = True

    def step(
        self, token: Token, state: DecoderState, memory: Memory
    ) -> tuple[StepOutput, DecoderState]:
        assert self.attention is not None
        # 1. Step with the last token: s'_t = f(s_{t-1}, e(y_{t-1})).
        hidden, between = self.body(token, None, state)
        # 2. Ask with the state between the steps: query s'_t -> context c_t.
        context, weights = look(self.attention, hidden, state, memory)
        # 3. Step with the context: s_t = f'(s'_t, c_t).
        from_context = self.second_cell.product(context)
        recurrent = self.second_cell(from_context, between.recurrent)
        after = replace(between, recurrent=recurrent)
        # 4. Hand state, token and, where it goes there, the context to the readout.
        hidden = recurrent.hidden[-1]
        output = StepOutput(hidden, context if self.into_readout else None, token.embedded, weights)
        return output, with_coverage(after, weights)


class NoAttention(Decoder[Literal["initial_state", "every_step"]]):
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
