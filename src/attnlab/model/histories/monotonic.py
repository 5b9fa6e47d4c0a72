"""Monotonic attention: read on until a token is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from pydantic import NonNegativeFloat
from torch import Tensor, nn
from torch.nn.functional import pad

from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import History, Remembered, RememberedT
from attnlab.model.histories.starts import at_first_token
from attnlab.model.normalisers.normaliser import at_least_float32


class ReadingOn(History[RememberedT]):
    """The base class of histories that read on until a token is chosen, with p = sigmoid(e + r).

    Args:
        initial_bias: r at first; it is learned. Below 0 the attention reads far at first.
        noise: standard deviation of the normal noise on the scores in training; 0 for none.
        hard: whether validation and search choose; False has the mean there too.
    """

    makes_weights: ClassVar[bool] = True

    def __init__(self, initial_bias: float, noise: NonNegativeFloat, hard: bool) -> None:
        super().__init__()
        self.noise = noise
        self.hard = hard
        self.r = nn.Parameter(torch.tensor(float(initial_bias)))

    def rows_sum_to_one(self, of_normaliser: bool) -> bool:
        return False

    def stops(self, scores: Tensor, before: Tensor) -> Tensor:
        """Where this step stops, (B, S), of its scores and of where the last one did, (B, S)."""
        energy = at_least_float32(scores) + self.r
        if self.hard and not self.training:
            return first_chosen(energy, before)
        if self.noise and self.training:
            energy = energy + self.noise * torch.randn_like(energy)
        return expected_weights(energy, before)


class Monotonic(ReadingOn[Remembered]):
    """Read on from where the last step stopped, until a token is chosen, with p = sigmoid(e + r).

    Raffel et al. 2017, "Online and linear-time attention by enforcing monotonic alignments".
    Training computes the weights that this has in the mean (equation 9): a_t(i) = p_t(i) q_t(i),
    where q_t(i) = sum_{k <= i} a_{t-1}(k) prod_{k <= l < i} (1 - p_t(l)) is how likely the reading
    comes to token i. Noise on the scores teaches it to be sure. Validation and search choose the
    first token with p >= 1/2 (algorithm 1). A step that comes to the end without a choice has the
    context 0, and so have all steps after it; so a row sums to 1 at most.

    Args:
        initial_bias: r at first; it is learned. Below 0 the attention reads far at first.
        noise: standard deviation of the normal noise on the scores in training; 0 for none.
        hard: whether validation and search choose; False has the mean there too.
    """

    def first(self, memory: Memory) -> Remembered:
        return Remembered(at_first_token(memory))

    def weigh(
        self, scores: Tensor, normalise: Callable[[Tensor], Tensor], past: Remembered
    ) -> Tensor:
        return self.stops(scores, past.weights)

    def after(
        self, past: Remembered, query: Tensor, context: Tensor, weights: Tensor
    ) -> Remembered:
        return Remembered(weights)


def first_chosen(energy: Tensor, before: Tensor) -> Tensor:
    """1 at the first token with p >= 1/2 from where the last step stopped, 0 elsewhere: (B, S).

    Args:
        energy: (B, S), of which p is the sigmoid.
        before: (B, S), the weights of the last step, above 0 where it stopped; 0 all over where it
            came to the end. Of weights that an intervention has set, their middle counts.
    """
    passed = before.cumsum(-1)
    total = passed[:, -1:]  # not 1 where a local-p scope has changed the weights
    is_behind = (passed >= total / 2) & (total > 0)
    may_stop = is_behind & (energy >= 0)
    is_first = may_stop & (may_stop.cumsum(-1) == 1)
    return is_first.to(before.dtype)


def expected_weights(energy: Tensor, before: Tensor) -> Tensor:
    """a_t of equation 9: energy (B, S), of which p is the sigmoid, and a_{t-1} (B, S) -> (B, S)."""
    return energy.sigmoid() * comes_by(energy, before)


def comes_by(energy: Tensor, before: Tensor) -> Tensor:
    """How likely the reading comes to each token, q_t (B, S) of equation 9.

    Its recurrence, q_t(i) = (1 - p_t(i - 1)) q_t(i - 1) + a_{t-1}(i), is taken over ranges of
    tokens, twice as long each time: log S operations on (B, S). There is no quotient of products as
    in the paper's equation 10, which would underflow.
    """
    passes_on = (-energy).sigmoid()[:, :-1]  # 1 - p, which is 1 at hidden tokens
    # Of the range that ends at a token: how likely a reading that comes to the token before the
    # range gets through it, and how likely one that starts within it comes to its end.
    through = pad(passes_on, (1, 0))
    found = before
    length = 1
    while length < energy.shape[1]:
        found = found + pad(through[:, length:] * found[:, :-length], (length, 0))
        through = pad(through[:, length:] * through[:, :-length], (length, 0))
        length *= 2
    return found
