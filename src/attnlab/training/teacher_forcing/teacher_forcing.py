"""What every teacher-forcing schedule is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import Field

Ratio = Annotated[float, Field(ge=0, le=1)]
Coin = Literal["token", "sequence", "batch"]
Guess = Literal["argmax", "sample"]


class TeacherForcing(ABC):
    """The probability, at each training step, that the decoder is fed the reference and not its own guess.

    The class is the schedule. Two choices stand beside it, the same in every class and independent of it:

    coin: what one toss decides for: a `token`, a `sequence` or the whole `batch` (see coin.py).
    guess: what is fed where the reference is not: the `argmax` of the last step's logits, or a `sample` of their
        softmax (Bengio et al. 2015, section 2.4, names both).
    """

    coin: Coin
    guess: Guess

    @abstractmethod
    def ratio_at(self, step: int) -> float:
        """The probability ε_i at optimiser step i = `step`, counted from 0; between 0 and 1."""
