"""Hydra's launcher for `launcher=slurm`, found here since Hydra looks for plug-ins in this package.

It submits jobs as hydra-submitit-launcher does, and waits for them in another way: a job that ends
without a result fails its own point alone, and a second leader joins the jobs of a first one.

Hydra executes this file outside of `sys.modules`, where a dataclass cannot have annotations that
are text (`from __future__ import annotations`).
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus
from hydra_plugins.hydra_submitit_launcher.config import SlurmQueueConf
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher

if TYPE_CHECKING:
    from submitit import Job

# Settings of Hydra's node that submitit knows for all kinds of executors.
_OF_ALL_EXECUTORS = (
    "timeout_min",
    "cpus_per_task",
    "gpus_per_node",
    "tasks_per_node",
    "mem_gb",
    "nodes",
    "name",
    "stderr_to_stdout",
)
_OF_THE_CONSTRUCTOR = ("submitit_folder", "max_num_timeout")
_OURS = ("wait",)


@dataclass
class SlurmArrayConfig(SlurmQueueConf):
    """The settings of submitit's launcher, of which a list of lines can be an interpolation."""

    _target_: str = "hydra_plugins.attnlab_slurm_launcher.SlurmArrayLauncher"
    setup: Any = None
    wait: bool = True


ConfigStore.instance().store(
    group="hydra/launcher", name="attnlab_slurm", node=SlurmArrayConfig(), provider="attnlab"
)


class SlurmArrayLauncher(SlurmLauncher):
    """Each job is one of a Slurm array."""

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Submit the jobs that Slurm does not have yet, and wait for all of them.

        With `wait=false` it returns what looks like jobs without a result.
        """
        points = {initial_job_idx + i: list(each) for i, each in enumerate(job_overrides)}
        places = SlurmPlaces(self)
        places.submit(points)
        if not self.params["wait"]:
            return [JobReturn(each, status=JobStatus.COMPLETED) for each in points.values()]
        returned: dict[int, JobReturn] = {}
        while len(returned) < len(points):
            returned |= places.ended()
        return [returned[number] for number in points]

    @contextmanager
    def places(self) -> Iterator["SlurmPlaces"]:
        """Points that can be submitted one by one."""
        yield SlurmPlaces(self)

    def submitted(
        self, sweep: Any, points: dict[int, list[str]]
    ) -> tuple[dict[int, "Job[Any]"], set[int]]:
        """The jobs of points, and the numbers of those that an earlier leader had submitted."""
        joined = {} if sweep is None else self._joined(sweep, points)
        if joined and self.params["wait"]:
            ids = ", ".join(job.job_id for job in joined.values())
            line = f"waits for jobs that an earlier command gave to Slurm: {ids}"
            print(line, file=sys.stderr)
        new = {number: each for number, each in points.items() if number not in joined}
        return joined | self._submit(sweep, new), set(joined)

    def _joined(self, sweep: Any, points: dict[int, list[str]]) -> dict[int, "Job[Any]"]:
        """The jobs of those points that an earlier leader submitted, and Slurm still has."""
        import submitit

        joined: dict[int, Job[Any]] = {}
        for number, submitted in sweep.still_queued().items():
            if points.get(number) == submitted.overrides:
                joined[number] = submitit.SlurmJob(submitted.folder, submitted.job)
        return joined

    def _submit(self, sweep: Any, points: dict[int, list[str]]) -> dict[int, "Job[Any]"]:
        """Submit points as an array; as several, one after the other, where Slurm takes no more."""
        from attnlab.runs.slurm_jobs import largest_array

        jobs: dict[int, Job[Any]] = {}
        numbers = list(points)
        size = largest_array() or len(numbers)
        after = None
        for start in range(0, len(numbers), size):
            array = {number: points[number] for number in numbers[start : start + size]}
            jobs |= self._submit_array(sweep, array, after)
            # All jobs of an array have an id such as `12_3`.
            after = jobs[numbers[start]].job_id.partition("_")[0]
        return jobs

    def _submit_array(
        self, sweep: Any, points: dict[int, list[str]], after: str | None
    ) -> dict[int, "Job[Any]"]:
        """Submit an array, whose jobs start when all of an earlier one have ended."""
        from attnlab.runs.slurm_jobs import Submitted

        assert self.config is not None
        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        arguments = []
        for number, overrides in points.items():
            state = Singleton.get_state()
            arguments.append((overrides, "hydra.sweep.dir", number, f"point {number}", state))
        executor = self._executor()
        if after is not None:
            executor.update_parameters(slurm_dependency=f"afterany:{after}")
        columns = zip(*arguments, strict=True)
        jobs = dict(zip(points, executor.map_array(self, *columns), strict=True))
        # At once: where Slurm does not take the next array, it has this one.
        if sweep is not None:
            folder = str(executor.folder)
            sweep.remember([Submitted(n, points[n], job.job_id, folder) for n, job in jobs.items()])
        return jobs

    def _executor(self) -> Any:
        import submitit

        settings = {}
        for name, value in self.params.items():
            if name in _OF_THE_CONSTRUCTOR + _OURS:
                continue
            settings[name if name in _OF_ALL_EXECUTORS else f"slurm_{name}"] = value
        # A cluster that knows GPUs as `gres` alone refuses a request for none of them.
        if settings["gpus_per_node"] == 0:
            settings["gpus_per_node"] = None

        executor = submitit.AutoExecutor(
            folder=self.params["submitit_folder"],
            cluster="slurm",
            slurm_max_num_timeout=self.params["max_num_timeout"],
        )
        executor.update_parameters(**settings)
        return executor


class SlurmPlaces:
    """The points that Slurm has (see `attnlab.runs.places.Submitting`)."""

    def __init__(self, launcher: SlurmArrayLauncher) -> None:
        # Not at the top: Hydra imports all plug-ins at the start of every command.
        from attnlab.runs.slurm_jobs import SweepOnSlurm, WaitedFor
        from attnlab.runs.sweep_job import led_sweep

        self._launcher = launcher
        self._folder = led_sweep()
        self._sweep = None if self._folder is None else SweepOnSlurm(self._folder)
        self._waited_for = WaitedFor()
        self._points: dict[int, list[str]] = {}
        self._jobs: dict[int, Job[Any]] = {}
        self._joined: set[int] = set()

    def submit(self, points: dict[int, list[str]]) -> None:
        """Submit the points that Slurm does not have yet."""
        jobs, joined = self._launcher.submitted(self._sweep, points)
        self._points |= points
        self._jobs |= jobs
        self._joined |= joined
        self._waited_for.add(jobs)

    def ended(self) -> dict[int, JobReturn]:
        from attnlab.errors import JobFailedError

        returned: dict[int, JobReturn] = {}
        for number, lost in self._waited_for.ended().items():
            if self._sweep is not None and number in self._joined:
                self._sweep.adopt(number)
            overrides = self._points[number]
            if lost is None:
                returned[number] = _result(self._jobs[number], overrides)
                continue
            if self._folder is not None:
                self._folder.record_lost(number, overrides, lost)
            returned[number] = _failed(overrides, JobFailedError(lost))
        return returned


def _result(job: "Job[Any]", overrides: list[str]) -> JobReturn:
    """What a job that has ended returned, or why it failed."""
    try:
        returned: JobReturn = job.results()[0]
    except Exception as error:  # submitit's, with the traceback of whatever the job raised
        return _failed(overrides, error)
    return returned


def _failed(overrides: list[str], error: Exception) -> JobReturn:
    failed = JobReturn(overrides=overrides, status=JobStatus.FAILED)
    failed.return_value = error  # Hydra raises it where a sweeper reads the value
    return failed
