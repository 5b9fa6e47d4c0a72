"""Settings of a sweep: the choice of points, the launcher, and the directions of the objectives."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

Objective = Literal["quality", "training_cpu_seconds"]


class Sweep(ABC):
    """A way to choose points.

    objectives: what a job returns to the sweeper. `quality` is the best validation value of
        training.monitor (never a test score: what is chosen by a score cannot be judged by it),
        `training_cpu_seconds` what training cost.
    """

    objectives: list[Objective]


@dataclass(frozen=True)
class Grid(Sweep):
    """Every combination of the values that are separated by commas."""

    objectives = ["quality"]  # noqa: RUF012


@dataclass(frozen=True)
class Optuna(Sweep):
    """Optuna's choice within ranges such as `training.optimizer.lr=interval(1e-4,1e-2)`.

    trials: points, in all; more of them go on from those that are there.
    seed: of the choice; with it, and with as many workers, a repeated sweep chooses the same points
        again.
    """

    trials: PositiveInt
    seed: NonNegativeInt
    objectives: Annotated[list[Objective], Field(min_length=1, max_length=2)]


class Launcher(ABC):
    """workers: jobs at a time.
    on_this_machine: whether they share its cores."""

    workers: int
    on_this_machine: bool = True


@dataclass(frozen=True)
class Serial(Launcher):
    """One job after the other, in one process."""

    workers: Literal[1]


@dataclass(frozen=True)
class Joblib(Launcher):
    """Jobs in processes of their own on this machine; each has `hardware.threads` threads."""

    workers: PositiveInt


@dataclass(frozen=True)
class Slurm(Launcher):
    """Each job is one of a Slurm array.

    partition, account: null takes the cluster's own.
    minutes: after which Slurm ends a job; it is then queued again and goes on from its last
        checkpoint.
    memory_gb: of a job.
    gpus: of a job; 0 for the CPU.
    """

    workers: PositiveInt
    partition: str | None
    account: str | None
    minutes: PositiveInt
    memory_gb: PositiveInt
    gpus: NonNegativeInt

    on_this_machine = False


Direction = Literal["minimize", "maximize"]


def directions(objectives: Sequence[str], monitor: str) -> list[Direction]:
    """One for each objective (see `Sweep`); `quality` is what training monitors."""
    quality: Direction = "minimize" if monitor.endswith("nll") else "maximize"
    return [quality if objective == "quality" else "minimize" for objective in objectives]
