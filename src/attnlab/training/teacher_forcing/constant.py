"""The same ratio from the first step to the last."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from attnlab.training.teacher_forcing.teacher_forcing import TeacherForcing


class ConstantTeacherForcing(TeacherForcing):
    """ratio: 1 always feeds the reference, 0 never does."""

    def __init__(self, ratio: Annotated[float, Field(ge=0, le=1)]) -> None:
        self.constant = ratio

    def ratio(self, step: int) -> float:
        return self.constant
