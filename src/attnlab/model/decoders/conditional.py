"""The conditional decoder: step, look, and step again with what was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.decoder import look
from attnlab.model.decoders.recurrent_decoder import RecurrentDecoder
from attnlab.model.decoders.step import DecoderState, StepOutput, Token


class Conditional(RecurrentDecoder[Literal["cell", "cell_and_readout"]]):
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
        context, weights, past = look(self.attention, hidden, state, memory)
        # 3. Step with the context: s_t = f'(s'_t, c_t).
        from_context = self.second_cell.product(context)
        recurrent = self.second_cell(from_context, between.recurrent)
        after = replace(between, recurrent=recurrent)
        # 4. Hand state, token and, where it goes there, the context to the readout.
        hidden = recurrent.hidden[-1]
        output = StepOutput(hidden, context if self.into_readout else None, token.embedded, weights)
        return output, replace(after, past=past)
