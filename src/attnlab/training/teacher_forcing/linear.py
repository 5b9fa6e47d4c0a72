"""A ratio that falls by the same amount each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from attnlab.training.teacher_forcing.teacher_forcing import Coin, Guess, Ratio, TeacherForcing


@dataclass(frozen=True)
class LinearTeacherForcing(TeacherForcing):
    """ε_i = max(end, start - slope i), linear decay: max(ε, k - c i) in Bengio et al. 2015, section 2.4.

    slope: how much the ratio falls at each optimiser step; it is at `end` after (start - end) / slope steps.
    """

    start: Ratio
    end: Ratio
    slope: Annotated[float, Field(gt=0, le=1)]
    coin: Coin = "token"
    guess: Guess = "argmax"

    def __post_init__(self) -> None:
        if self.end > self.start:
            raise ValueError(
                f"end must be at most start, for the ratio falls, got end {self.end} and start {self.start}; "
                "choose a smaller end or a greater start"
            )

    def ratio_at(self, step: int) -> float:
        return max(self.end, self.start - self.slope * step)
