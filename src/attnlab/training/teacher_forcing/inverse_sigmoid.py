"""A ratio that stays high, falls, and ends low: a sigmoid turned round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from attnlab.training.teacher_forcing.teacher_forcing import Coin, Guess, TeacherForcing


@dataclass(frozen=True)
class InverseSigmoidTeacherForcing(TeacherForcing):
    """ε_i = k / (k + exp(i / k)), inverse sigmoid decay (Bengio et al. 2015, section 2.4).

    k: how slowly, in optimiser steps; the ratio starts at k / (k + 1) and is a half after k ln k steps.
    """

    k: Annotated[float, Field(ge=1)]
    coin: Coin = "token"
    guess: Guess = "argmax"

    def ratio_at(self, step: int) -> float:
        # Both sides of the fraction times exp(-i / k): exp(i / k) itself overflows at i = 710 k.
        shrunk = self.k * math.exp(-step / self.k)
        return shrunk / (shrunk + 1)
