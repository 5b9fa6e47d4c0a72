"""The same ratio from the first step to the last."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.training.teacher_forcing.teacher_forcing import Coin, Guess, Ratio, TeacherForcing


@dataclass(frozen=True)
class ConstantTeacherForcing(TeacherForcing):
    """ε_i = ratio: 1 always feeds the reference, 0 never does."""

    ratio: Ratio
    coin: Coin = "token"
    guess: Guess = "argmax"

    def ratio_at(self, step: int) -> float:
        return self.ratio
