"""Settings of a sweep: the choice of points, the launcher, and the directions of the objectives."""

from __future__ import annotations

import os
import re
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

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
    """Every combination of the values that are separated by commas.

    shard: `3/8` takes the third of eight parts of the points, so that eight commands, which differ
        in this alone, do the whole sweep together; null takes all.
    """

    shard: str | None

    objectives = ["quality"]  # noqa: RUF012

    def __post_init__(self) -> None:
        _check_shard(self.shard)


@dataclass(frozen=True)
class Listed(Sweep):
    """The points of a file, each with every combination of the values separated by commas.

    points: a YAML file, a list of points, each a list of overrides without commas.
    shard: a part of them, as of a grid.
    """

    points: Annotated[str, Field(min_length=1)]
    shard: str | None

    objectives = ["quality"]  # noqa: RUF012

    def __post_init__(self) -> None:
        _check_shard(self.shard)


def _check_shard(shard: str | None) -> None:
    """Raise ValueError for anything but a part such as `3/8`."""
    if shard is None:
        return
    written = re.fullmatch(r"([0-9]+)/([0-9]+)", shard)
    if written is None or not 1 <= int(written[1]) <= int(written[2]):
        raise ValueError(
            f"shard must be a part such as 3/8, the third of eight, or null; got {shard!r}"
        )


def part_of(shard: str | None, points: int) -> range:
    """The numbers of the points of a part, such as `3/8`; of all points without one.

    The parts differ by one point at most.
    """
    if shard is None:
        return range(points)
    number, parts = map(int, shard.split("/"))
    return range((number - 1) * points // parts, number * points // parts)


Sampler = Literal["tpe", "random", "gp", "cmaes", "nsgaii", "nsgaiii", "qmc", "grid"]
Pruner = Literal["median", "percentile", "wilcoxon", "none"]


@dataclass(frozen=True)
class Optuna(Sweep):
    """Optuna's choice within ranges such as `training.optimizer.lr=interval(1e-4,1e-2)`.

    trials: settings to try, in all; more of them go on from those that are there.
    seeds: trainings of each setting, with the experiment's seed and those after it; what is
        optimised is the mean over them.
    sampler: of Optuna's: `tpe`, `random`, `gp` (a Gaussian process), `cmaes`, `nsgaii`, `nsgaiii`,
        `qmc` (a quasi-random sequence), `grid` (every combination, of choices and ranges).
    pruner: gives a setting up before all of its seeds are trained: `median` (each of its seeds so
        far is worse than the median of the others with as many), `percentile` (worse than three
        quarters of them), `wilcoxon` (a signed-rank test against the best one, for many seeds),
        `none`; null is `median` with several seeds and one objective, else `none`.
    seed: of the choice; with it, and with as many workers that wait for each other, a repeated
        sweep chooses the same points again.
    storage: `sqlite:///<file>.db` or `postgresql+psycopg2://...`, where the trials are kept and
        several commands share them; null keeps them in memory.
    study: the name of the trials in the storage; null is the identity of the sweep.
    wait_for_batch: launch as many points as there are workers, and choose the next ones when all of
        them have ended; false: choose one as soon as a worker is free, which keeps all of them
        busy. Which settings are chosen then depends on which trainings end first.
    """

    trials: PositiveInt
    seed: NonNegativeInt
    objectives: Annotated[list[Objective], Field(min_length=1, max_length=2)]
    seeds: PositiveInt = 1
    sampler: Sampler = "tpe"
    pruner: Pruner | None = None
    storage: Annotated[str, Field(min_length=1)] | None = None
    study: Annotated[str, Field(min_length=1)] | None = None
    wait_for_batch: bool = True

    def __post_init__(self) -> None:
        if self.pruner not in (None, "none") and len(self.objectives) > 1:
            raise ValueError(
                f"pruner must be none or null with two objectives, of which Optuna prunes neither; "
                f"got {self.pruner}"
            )


class Launcher(ABC):
    """workers: jobs at a time."""

    workers: int


@dataclass(frozen=True)
class Serial(Launcher):
    """One job after the other, in one process."""

    # No Literal[1]: for pydantic `true` is one.
    workers: Annotated[int, Field(ge=1, le=1, description="1 (a whole number)")]


@dataclass(frozen=True)
class Joblib(Launcher):
    """Jobs in processes of their own on this machine; each has `hardware.threads` threads."""

    workers: PositiveInt


@dataclass(frozen=True)
class Slurm(Launcher):
    """Each job is one of a Slurm array.

    partition, account, qos: null takes the cluster's own.
    constraint: features that its nodes must have, as `sbatch --constraint` takes them.
    minutes: after which Slurm ends a job; it is then queued again and goes on from its last
        checkpoint.
    memory_gb: of a job.
    gpus: of a job; 0 for the CPU.
    gres: other resources of a job, as `sbatch --gres` takes them; GPUs too, with gpus=0.
    setup: lines of the job's shell script, before Python starts.
    wait: whether the command waits for its jobs. If not, the last one of them ends the sweep.
    """

    workers: PositiveInt
    partition: str | None
    account: str | None
    qos: str | None
    constraint: str | None
    minutes: PositiveInt
    memory_gb: PositiveInt
    gpus: NonNegativeInt
    gres: str | None
    setup: list[str]
    wait: bool


@dataclass(frozen=True)
class Ray(Launcher):
    """Each job is a task of Ray, which has `hardware.threads` processors.

    address: of the cluster; null for the one that runs on this machine, or else for one of this
        machine alone that ends with the sweep.
    memory_gb: that a node must have free for a job; null asks for none.
    gpus: of a job.
    retries: of a job whose process or node died.
    """

    workers: PositiveInt
    address: str | None
    memory_gb: PositiveFloat | None
    gpus: NonNegativeInt
    retries: NonNegativeInt


@dataclass(frozen=True)
class JobProcesses:
    """How the jobs of a sweep run, as the node `hydra.launcher` says it.

    That node decides, also where `hydra/launcher=joblib` chose it and the section `launcher` says
    nothing of it.

    kind: `serial`, `joblib`, `slurm`, `ray`, `local` (processes of submitit on this machine), or
        `other`, a launcher that attnlab does not know.
    workers: jobs at a time.
    waits: whether the launcher returns when the jobs have ended, and not when Slurm has them.
    address: of a cluster of Ray, where one is named.
    """

    kind: Literal["serial", "joblib", "slurm", "ray", "local", "other"]
    workers: int
    waits: bool = True
    address: str | None = None

    @property
    def on_this_machine(self) -> bool:
        """Whether the jobs share its cores; of an unknown launcher it is assumed."""
        return self.kind not in ("slurm", "ray")

    @property
    def share_terminal(self) -> bool:
        """Whether a job's errors reach the terminal; submitit and Ray write them to files."""
        return self.kind not in ("slurm", "ray", "local")


def job_processes(launcher: Mapping[str, Any], points: int) -> JobProcesses:
    """How the jobs run under a resolved node `hydra.launcher`.

    points: of the sweep, which submitit starts all at once on this machine.
    """
    name = str(launcher.get("_target_")).rpartition(".")[2]
    if name == "BasicLauncher":
        return JobProcesses("serial", 1)
    if name == "JoblibLauncher":
        return JobProcesses("joblib", _joblib_workers(launcher["n_jobs"]))
    if name in ("SlurmLauncher", "SlurmArrayLauncher"):  # of submitit, and of launcher=slurm
        waits = bool(launcher.get("wait", True))
        return JobProcesses("slurm", int(launcher["array_parallelism"]), waits)
    if name == "RayTasksLauncher":  # of launcher=ray
        return JobProcesses("ray", int(launcher["workers"]), address=launcher.get("address"))
    if name == "LocalLauncher":
        return JobProcesses("local", max(1, points))
    return JobProcesses("other", os.cpu_count() or 1)


def asks_for_gpus(launcher: Mapping[str, Any]) -> bool:
    """Whether jobs on a cluster get GPUs under a resolved node `hydra.launcher`.

    True for a launcher whose jobs see the GPUs of their machine anyway.
    """
    kind = job_processes(launcher, points=1).kind
    if kind == "ray":
        return bool(launcher["gpus"])
    if kind != "slurm":
        return True
    if launcher.get("gpus_per_node") or launcher.get("gpus_per_task"):
        return True
    return "gpu" in f"{launcher.get('gres')} {launcher.get('additional_parameters')}"


def _joblib_workers(n_jobs: int) -> int:
    """The processes that joblib starts: -1 is one for each core, -2 one less."""
    if n_jobs > 0:
        return n_jobs
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def workers(launcher: Mapping[str, Any]) -> int:
    """The jobs that a sweeper asks for at a time, so that all workers of the launcher are busy."""
    unknown_points = 2  # of a sweeper that chooses as it goes, two beside each other
    processes = job_processes(launcher, unknown_points)
    return unknown_points if processes.kind == "other" else processes.workers


Direction = Literal["minimize", "maximize"]


def directions(objectives: Sequence[str], monitor: str) -> list[Direction]:
    """One for each objective (see `Sweep`); `quality` is what training monitors."""
    quality: Direction = "minimize" if monitor.endswith("nll") else "maximize"
    return [quality if objective == "quality" else "minimize" for objective in objectives]
