"""Hard attention that goes on from its last alignment (Wu and Cotterell 2019).

Axes: S source, O moves; leading axes as in `attnlab.model.outputs.output`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from attnlab.model.attention.memory import Memory
from attnlab.model.decoders.step import StepOutput
from attnlab.model.outputs.alignment_chain import NEVER, AlignmentChain, is_never
from attnlab.model.outputs.hard_attention import AlignedReading
from attnlab.model.outputs.likelihood import at_least_single
from attnlab.model.readouts import Readout


@dataclass(frozen=True, kw_only=True)
class MovingReading(AlignedReading):
    """What each step knows of how its alignment moves."""

    log_moves: Tensor  # (..., S, O), log p(a_t = j + o | a_{t-1} = j)


class FirstOrderHardAttention(AlignmentChain[MovingReading]):
    """p(a_t = j + o | a_{t-1} = j) is in proportion to alpha_t(j + o) exp(U_o [s_t; h_j] + b_o).

    The first-order model of Wu and Cotterell 2019: how far an alignment moves, o, depends on the
    state s_t and on the source token that it stood at, h_j. There the weights of the attention have
    no say, which is model/attention=uniform here. A step takes O(S O) time and memory, where moves
    that are longer than the batch's longest source are left out.

    Args:
        reach: the farthest move. No token is farther away than the length of its source, so that
            of a longer reach the longest moves are never learnt.
        monotonic: whether an alignment never goes back: o is at least 0.
    """

    def __init__(
        self,
        reach: PositiveInt,
        monotonic: bool,
        *,
        readout_size: int,
        hidden_size: int,
        context_size: int,
        target_vocabulary_size: int,
    ) -> None:
        super().__init__(readout_size=readout_size, target_vocabulary_size=target_vocabulary_size)
        self.backward_reach = 0 if monotonic else reach
        self.forward_reach = reach
        moves = self.backward_reach + 1 + self.forward_reach
        self.of_state = nn.Linear(hidden_size, moves)
        self.of_value = nn.Linear(context_size, moves, bias=False)

    def read_with(
        self, layer: Readout, readout: Tensor, step: StepOutput, memory: Memory
    ) -> MovingReading:
        # 1. How far the alignment moves from each source token, wherever that leads.
        assert memory.values is not None
        reading = self._aligned(layer, readout, step, memory)
        of_state, of_value = self._scores_of_moves(step.hidden, memory.values)
        from_each = of_value[reading.row]  # (..., S, O)
        scores = at_least_single(of_state.unsqueeze(-2) + from_each)

        # 2. Where that leads outside of the sentence, or to what has no weight, it cannot go.
        weighted = scores + self._at_targets(reading.log_weights.clamp(min=NEVER))
        cannot_move = is_never(weighted).all(-1, keepdim=True)
        stays = torch.full_like(weighted, NEVER)
        backward, _ = self._reach_within(memory.values.shape[-2])
        stays[..., backward] = 0
        log_moves = torch.where(cannot_move, stays, weighted.log_softmax(-1))
        moving = MovingReading(**vars(reading), log_moves=log_moves)
        return self._started(moving, memory)

    def advance(self, reading: MovingReading, log_before: Tensor) -> Tensor:
        joint = log_before.unsqueeze(-1) + reading.log_moves  # (..., S, O), by where it comes from
        backward, _ = self._reach_within(joint.shape[-2])
        return _by_target(joint, backward).logsumexp(-2)

    def look_back(self, reading: MovingReading, log_after: Tensor) -> Tensor:
        return (reading.log_moves + self._at_targets(log_after)).logsumexp(-1)

    def _at_targets(self, of_tokens: Tensor) -> Tensor:
        """Of log-probabilities (..., S) those of the token that each move leads to: (..., S, O)."""
        backward, forward = self._reach_within(of_tokens.shape[-1])
        around = pad(of_tokens, (backward, forward), value=NEVER)
        return around.unfold(-1, backward + 1 + forward, 1)

    def _reach_within(self, length: int) -> tuple[int, int]:
        """The longest moves backward and forward in sources of so many tokens, pads among them."""
        longest = length - 1
        return min(self.backward_reach, longest), min(self.forward_reach, longest)

    def _scores_of_moves(self, hidden: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """U_o s_t + b_o (..., O) and U_o h_j (B, S, O) of the moves that a source has room for.

        hidden is (..., H), values are (B, S, D).
        """
        backward, forward = self._reach_within(values.shape[-2])
        if (backward, forward) == (self.backward_reach, self.forward_reach):
            return self.of_state(hidden), self.of_value(values)
        moves = slice(self.backward_reach - backward, self.backward_reach + forward + 1)
        of_state = linear(hidden, self.of_state.weight[moves], self.of_state.bias[moves])
        return of_state, linear(values, self.of_value.weight[moves])


def _by_target(joint: Tensor, backward_reach: int) -> Tensor:
    """Log-probabilities (..., S, O) by origin and move -> (..., O, S) by move and target.

    Each move's row is shifted by it. Rows that are longer by O, read as rows that are longer by
    O - 1, shift each row one place farther than the one before.
    """
    size, moves = joint.shape[-2:]
    longer = pad(joint.transpose(-2, -1), (0, moves), value=NEVER)  # (..., O, S + O)
    flat = longer.flatten(-2)[..., :-moves]
    shifted = flat.unflatten(-1, (moves, size + moves - 1))
    return shifted.narrow(-1, backward_reach, size)
