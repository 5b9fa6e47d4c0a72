"""Where the jobs of a sweep run, and how many at a time."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Literal

from pydantic import NonNegativeInt, PositiveInt


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
    minutes: after which Slurm ends a job; it is then queued again and goes on from its last checkpoint.
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
