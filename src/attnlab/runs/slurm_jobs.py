"""The Slurm jobs of a sweep: which of them run, which have ended, and which Slurm lost.

Slurm is asked by `squeue`, which every cluster answers; `sacct`, which submitit asks, needs a
database of jobs that many clusters do not have, and calls a job ended whose node failed, although
Slurm has queued it again.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from attnlab.errors import ExperimentError
from attnlab.files import read_own_record, write_json
from attnlab.locks import lock
from attnlab.runs.sweep_record import SweepFolder

_RESULT_INTERVAL = 1.0  # seconds between two looks for files of results
_LOOKS_A_SECOND = 50  # at most, for the sake of a network file system
_QUEUE_INTERVAL = 10.0  # seconds between two questions to Slurm's controller
_PATIENCE = 60.0  # seconds for the controller to answer
_SUBMITTED = "slurm.json"
# All other states, of which there are more in each version of Slurm, are of jobs that go on.
_ENDED = {
    "BOOT_FAIL": "its node did not start",
    "CANCELLED": "it was cancelled",
    "COMPLETED": "it ended without a result",
    "DEADLINE": "it reached its deadline",
    "FAILED": "it ended without a result",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "it needed more than launcher.memory_gb",
    "PREEMPTED": "other jobs took its place",
    "REVOKED": "another cluster took it",
    "TIMEOUT": "it reached launcher.minutes",
}
_FORGOTTEN = "Slurm does not know it any more: it was cancelled, or its node failed"


class Job(Protocol):
    """What is used of submitit's jobs."""

    @property
    def job_id(self) -> str: ...

    @property
    def paths(self) -> Any: ...


def states_of_jobs(job_ids: Iterable[str]) -> dict[str, str] | None:
    """The states of jobs, such as `RUNNING`, without those that Slurm has forgotten.

    job_ids: `12` or, of an array, `12_3`.

    Returns None where the controller does not answer, as while it restarts.
    """
    numbers = sorted({job_id.partition("_")[0] for job_id in job_ids})
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T"]
    try:
        ended = subprocess.run(
            [*command, f"--jobs={','.join(numbers)}"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None

    if ended.returncode != 0:
        # So it says where it has forgotten the only one that it was asked for.
        return {} if "Invalid job id" in ended.stderr else None
    lines = [line.split("|") for line in ended.stdout.splitlines() if "|" in line]
    return {job_id.strip(): state.strip() for job_id, state in lines}


def largest_array() -> int | None:
    """How many jobs an array may have (MaxArraySize); None where Slurm does not say."""
    try:
        ended = subprocess.run(
            ["scontrol", "show", "config"], capture_output=True, text=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", ended.stdout, re.MULTILINE)
    if found is None:
        return None
    return int(found[1]) or None  # 0 takes no arrays at all, which sbatch says


def cancel_jobs(job_ids: Iterable[str]) -> None:
    """End jobs, also those that wait.

    Raises ExperimentError with what `scancel` says.
    """
    command = ["scancel", *job_ids]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExperimentError(f"scancel: {error}") from error
    if ended.returncode != 0:
        raise ExperimentError(f"scancel: {' '.join(ended.stderr.split())}")


def is_queued(state: str | None) -> bool:
    """Whether a job in this state waits, runs, or will run again."""
    return state is not None and state not in _ENDED


class WaitedFor:
    """Jobs whose end is waited for."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._suspected: dict[int, str] = {}
        self._asked_at = time.monotonic()

    def add(self, jobs: Mapping[int, Job]) -> None:
        """Wait for these, too.

        jobs: by the numbers of their points.
        """
        self._jobs |= jobs

    def ended(self) -> dict[int, str | None]:
        """Wait until one has ended at least: -> the numbers of all that have.

        None stands for a job that left a result, and else the reason why it did not.
        """
        ended: dict[int, str | None] = {}
        while self._jobs:
            for number, job in list(self._jobs.items()):
                if _has_result(job):
                    del self._jobs[number]
                    ended[number] = None
            for number, why in self._lost().items():
                del self._jobs[number]
                ended[number] = why
            if ended:
                break
            time.sleep(max(_RESULT_INTERVAL, len(self._jobs) / _LOOKS_A_SECOND))
        return ended

    def _lost(self) -> dict[int, str]:
        """The jobs that Slurm runs no more, if it is time to ask it again, and why."""
        if not self._jobs or time.monotonic() < self._asked_at + _QUEUE_INTERVAL:
            return {}
        self._asked_at = time.monotonic()
        found = _without_jobs(self._jobs)
        # A result may reach this machine after the news of the job's end, and a job may be on its
        # way back into the queue: only what two answers agree on is true.
        lost = {number: found[number] for number in found.keys() & self._suspected.keys()}
        self._suspected = {number: why for number, why in found.items() if number not in lost}
        return lost


def _without_jobs(jobs: Mapping[int, Job]) -> dict[int, str]:
    """The numbers of those jobs that Slurm runs no more, with the reason."""
    states = states_of_jobs(job.job_id for job in jobs.values())
    if states is None:
        return {}
    found = {}
    for number, job in jobs.items():
        state = states.get(job.job_id)
        if is_queued(state) or _has_result(job):
            continue
        reason = _FORGOTTEN if state is None else _ENDED[state]
        found[number] = (
            f"its Slurm job {job.job_id} is over: {reason}; "
            f"the same command goes on (what Slurm and the job printed: {job.paths.stderr})"
        )
    return found


def _has_result(job: Job) -> bool:
    folder: Path = job.paths.folder
    if not folder.is_dir():
        return False
    # A listing, since network file systems remember for a while that a file was missing.
    return job.paths.result_pickle.name in os.listdir(folder)


@dataclass(frozen=True)
class Submitted:
    """A point that was given to Slurm.

    job: its id there.
    folder: of submitit's files, in which `%j` stands for the id.
    """

    number: int
    overrides: list[str]
    job: str
    folder: str


class SweepOnSlurm:
    """The sweep that this process leads, as far as it is on Slurm."""

    def __init__(self, folder: SweepFolder) -> None:
        self._folder = folder

    def still_queued(self) -> dict[int, Submitted]:
        """Points whose jobs an earlier leader submitted and Slurm still has, by their numbers.

        Raises ExperimentError where the controller does not answer: to submit them again would have
        Slurm run two jobs for one point.
        """
        states = self.states()
        if states is None:
            raise ExperimentError(
                "launcher: Slurm does not answer (squeue), so it is not known which jobs of an "
                "earlier command it still has; give the command again when it does"
            )
        return {point.number: point for point in self._submitted() if point.number in states}

    def states(self) -> dict[int, tuple[str, str]] | None:
        """{number: (id, state)} of the points whose jobs Slurm still has.

        None where the controller does not answer, or this machine cannot ask it.
        """
        submitted = self._submitted()
        if not submitted:
            return {}
        states = states_of_jobs(point.job for point in submitted)
        if states is None:
            return None
        return {
            point.number: (point.job, states[point.job])
            for point in submitted
            if is_queued(states.get(point.job))
        }

    def remember(self, points: Sequence[Submitted]) -> None:
        """Write down which jobs the points have, for a leader that comes after this one."""
        path = self._folder.path / _SUBMITTED
        # The leaders of other parts of the sweep write it, too.
        with lock(path.with_suffix(".lock")):
            known = {point.number: point for point in self._submitted()}
            known |= {point.number: point for point in points}
            write_json(path, {"submitted": [asdict(point) for point in known.values()]})

    def _submitted(self) -> list[Submitted]:
        path = self._folder.path / _SUBMITTED
        if not path.is_file():
            return []
        record = read_own_record(path, dict[str, list[Submitted]], "remove it")
        return record["submitted"]

    def adopt(self, number: int) -> None:
        """Count a point among those of this start, whose job an earlier leader submitted.

        The job must have ended, for it writes the same record.
        """
        job = self._folder.job(number)
        if job is not None:
            started = self._folder.read().started
            self._folder.write_job(replace(job, start_of_sweep=started))
