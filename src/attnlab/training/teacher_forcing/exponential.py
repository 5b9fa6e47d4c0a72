"""A ratio that falls by the same factor each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from attnlab.training.teacher_forcing.teacher_forcing import Coin, Guess, TeacherForcing


@dataclass(frozen=True)
class ExponentialTeacherForcing(TeacherForcing):
    """ε_i = k^i, exponential decay (Bengio et al. 2015, section 2.4).

    k: the factor of one optimiser step; the ratio is a half after ln 2 / -ln k steps.
    """

    k: Annotated[float, Field(gt=0, lt=1)]
    coin: Coin = "token"
    guess: Guess = "argmax"

    def ratio_at(self, step: int) -> float:
        return self.k**step
