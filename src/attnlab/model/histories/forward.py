"""Forward attention: from step to step it stays, or moves on by a token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from attnlab.model.attention.equal_scores import OfEqualScores
from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import History, Remembered
from attnlab.model.histories.starts import at_first_token

LEAST = 1e-15  # of what can be reached; below it, quotients have gradients beyond float32


@dataclass(frozen=True)
class Moving(Remembered):
    """The last weights, and how likely the next step moves on: u_{t-1}."""

    transition: Tensor  # (B,)


class Forward(History[Moving]):
    """weights_t ∝ ((1 - u) weights_{t-1}(i) + u weights_{t-1}(i - 1)) y_t(i), with u = 1/2.

    Zhang et al. 2018, "Forward attention in sequence-to-sequence acoustic modeling for speech
    synthesis", algorithm 1; y_t are the weights that the normaliser makes. The attention starts at
    the first token, and each step may stay where it is or move on by one token, so that it never
    goes back. Where y_t is 0 at all tokens that can be reached, as under a sparse normaliser or a
    local scope, or their products sum to less than 1e-15, the weights are y_t.
    """

    needs_positive_weights = True  # it divides by their sum
    of_equal_scores: OfEqualScores = "fixed"

    def rows_sum_to_one(self, of_normaliser: bool) -> bool:
        return True

    def first(self, memory: Memory) -> Moving:
        start = at_first_token(memory)
        return Moving(start, start.new_full(start.shape[:1], 0.5))

    def weigh(self, scores: Tensor, normalise: Callable[[Tensor], Tensor], past: Moving) -> Tensor:
        y = normalise(scores)
        u = past.transition.unsqueeze(1)
        one_before = nn.functional.pad(past.weights, (1, -1))  # weights_{t-1}(i - 1)
        moved = (1 - u) * past.weights + u * one_before
        # A token that is far from where it stands would have the gradient y / total, which grows
        # from step to step until it overflows.
        moved = torch.where(moved > LEAST, moved, moved.detach())
        reached = moved * y
        total = reached.sum(-1, keepdim=True)
        return torch.where(total > LEAST, reached / total.clamp(min=LEAST), y)

    def after(self, past: Moving, query: Tensor, context: Tensor, weights: Tensor) -> Moving:
        return Moving(weights, past.transition)


class ForwardWithAgent(Forward):
    """Forward attention whose transition agent says when to move on: u_t = DNN(c_t, q_t).

    Zhang et al. 2018, algorithm 2: a hidden layer of tanh and a sigmoid, u_t = sigmoid(v · tanh(W_c
    c_t + W_q q_t + b) + b'), and u_0 = 1/2. The paper's network also reads the last output, which
    the query knows where the decoder steps before it attends; the query s_{t-1} of
    `attend_then_step` knows the outputs before it.

    Args:
        size: width of the hidden layer.
    """

    of_equal_scores: OfEqualScores = "learned"

    def __init__(self, size: PositiveInt, *, query_size: int, value_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(value_size + query_size, size)
        self.v = nn.Linear(size, 1)

    def after(self, past: Moving, query: Tensor, context: Tensor, weights: Tensor) -> Moving:
        hidden = torch.tanh(self.W(torch.cat([context, query], dim=-1)))
        transition = torch.sigmoid(self.v(hidden).squeeze(-1))
        return Moving(weights, transition.to(weights.dtype))
