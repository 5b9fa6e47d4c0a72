"""What chooses the points of a sweep."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

Objective = Literal["quality", "training_cpu_seconds"]


class Sweep(ABC):
    """A way to choose points.

    objectives: what a job returns to the sweeper. `quality` is the best validation value of training.monitor (never a
        test score: what is chosen by a score cannot be judged by it), `training_cpu_seconds` what training cost.
    """

    objectives: list[Objective]


@dataclass(frozen=True)
class Grid(Sweep):
    """Every combination of the values that are separated by commas."""

    objectives = ["quality"]  # noqa: RUF012


@dataclass(frozen=True)
class Optuna(Sweep):
    """Optuna's choice within ranges such as `training.optimizer.learning_rate=interval(1e-4,1e-2)`.

    trials: points, in all; more of them go on from those that are there.
    seed: of the choice; with it, and with as many workers, a repeated sweep chooses the same points again.
    """

    trials: PositiveInt
    seed: NonNegativeInt
    objectives: Annotated[list[Objective], Field(min_length=1, max_length=2)]

    def __post_init__(self) -> None:
        if len(set(self.objectives)) < len(self.objectives):
            raise ValueError(f"objectives must differ, got {self.objectives}")
