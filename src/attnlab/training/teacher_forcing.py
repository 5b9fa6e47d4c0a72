"""Teacher forcing: schedules of its ratio, and the coin tosses that choose the decoder's input."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from attnlab.batch import Batch
from attnlab.errors import ExperimentError, show

Ratio = Annotated[float, Field(ge=0, le=1)]
Coin = Literal["token", "sequence", "batch"]
Guess = Literal["argmax", "sample"]

# Separates the coins from other draws with the same seed, such as the order of the batches.
STREAM = 2015


class TeacherForcing(ABC):
    """The probability, at each training step, that the decoder is fed the reference.

    Otherwise it is fed its own guess. The class is the schedule. Every class has two more settings,
    independent of it:

    coin: what one toss decides for: a `token`, a `sequence` or the whole `batch`.
    guess: what is fed in place of the reference: the `argmax` of the last step's logits, or a
        `sample` of their softmax (Bengio et al. 2015, section 2.4, names both).
    """

    coin: Coin = "token"
    guess: Guess = "argmax"

    @abstractmethod
    def ratio_at(self, step: int) -> float:
        """The probability ε_i at optimiser step i = `step`, counted from 0; between 0 and 1."""


@dataclass(frozen=True)
class ConstantTeacherForcing(TeacherForcing):
    """ε_i = ratio.

    ratio: 1 always feeds the reference, 0 never does.
    """

    ratio: Ratio
    coin: Coin = "token"
    guess: Guess = "argmax"

    def ratio_at(self, step: int) -> float:
        return self.ratio


@dataclass(frozen=True)
class LinearTeacherForcing(TeacherForcing):
    """ε_i = max(end, start - slope i), linear decay (Bengio et al. 2015, section 2.4).

    The paper writes it as max(ε, k - c i).

    start, end: the ratio at the first step, and the least one.
    slope: how much the ratio falls at each optimiser step; it reaches `end` after (start - end) /
        slope steps.
    """

    start: Ratio
    end: Ratio
    slope: Annotated[float, Field(gt=0, le=1)]
    coin: Coin = "token"
    guess: Guess = "argmax"

    def ratio_at(self, step: int) -> float:
        return max(self.end, self.start - self.slope * step)


@dataclass(frozen=True)
class ExponentialTeacherForcing(TeacherForcing):
    """ε_i = k^i, exponential decay (Bengio et al. 2015, section 2.4).

    k: the factor of one optimiser step; the ratio is one half after ln 2 / -ln k steps.
    """

    k: Annotated[float, Field(gt=0, lt=1)]
    coin: Coin = "token"
    guess: Guess = "argmax"

    def ratio_at(self, step: int) -> float:
        return self.k**step


@dataclass(frozen=True)
class InverseSigmoidTeacherForcing(TeacherForcing):
    """ε_i = k / (k + exp(i / k)), inverse sigmoid decay (Bengio et al. 2015, section 2.4).

    k: how slowly, in optimiser steps; the ratio starts at k / (k + 1) and is one half after k ln k
        steps.
    """

    k: Annotated[float, Field(ge=1)]
    coin: Coin = "token"
    guess: Guess = "argmax"

    def ratio_at(self, step: int) -> float:
        # Numerator and denominator are multiplied by exp(-i / k), because exp(i / k) overflows at
        # i = 710 k.
        shrunk = self.k * math.exp(-step / self.k)
        return shrunk / (shrunk + 1)


def checked_ratio(forcing: TeacherForcing, step: int) -> float:
    """The ratio at a step; raises ExperimentError where a class returns no probability."""
    ratio = forcing.ratio_at(step)
    if not 0 <= ratio <= 1:  # true of NaN, too
        raise ExperimentError(
            f"training.teacher_forcing: {type(forcing).__name__}.ratio_at({step}) must be between "
            f"0 and 1, got {show(ratio)}"
        )
    return ratio


def toss(forcing: TeacherForcing, step: int, batch: Batch, seed: int) -> Tensor | None:
    """The tosses of a batch, (B, T) bool: True feeds the reference.

    None if all are True: the model then needs no guesses.

    One toss for each token is Bengio et al. 2015; tossing once for a sequence, they found "much
    worse", because one error then leads to the next. One toss for a whole batch is what many
    implementations do, by intent or not.

    A coin depends on the seed, the step and the pair (for a token, also on its position among the
    pair's tokens), and on nothing else: neither pads nor the number of processes change it.
    """
    ratio = checked_ratio(forcing, step)
    if ratio == 1:
        return None

    draws = _draws(forcing.coin, step, batch, seed)
    feed_reference = torch.from_numpy(draws < ratio).expand(batch.target_mask.shape)
    if feed_reference.all():
        return None
    # A token's coin is that of its position among the row's real tokens, wherever the pads stand.
    position = (batch.target_mask.cumsum(1) - 1).clamp(min=0)  # (B, T)
    return feed_reference.to(position.device).gather(1, position)


def _draws(coin: Coin, step: int, batch: Batch, seed: int) -> NDArray[np.float64]:
    """Numbers in [0, 1): (1, 1) for a batch's coin, (B, 1) for sequences', (B, T) for tokens'."""
    if coin == "batch":
        return np.random.default_rng([seed, STREAM, step]).random((1, 1))

    tosses = batch.target_mask.shape[1] if coin == "token" else 1
    draws = []
    for row in batch.rows.tolist():
        generator = np.random.default_rng([seed, STREAM, step, row])
        draws.append(generator.random(tosses))
    return np.stack(draws)
