"""Hydra's launcher for `launcher=slurm`, found here since Hydra looks for plug-ins in this package.

It submits jobs as hydra-submitit-launcher does, and waits for them in another way: a job that ends
without a result fails its own point alone, and a second leader joins the jobs of a first one.

Hydra executes this file outside of `sys.modules`, where a dataclass cannot have annotations that
are text (`from __future__ import annotations`).
"""

import sys
from collections.abc import Sequence
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
        # Not at the top: Hydra imports all plug-ins at the start of every command.
        from attnlab.errors import JobFailedError
        from attnlab.runs.slurm_jobs import SweepOnSlurm, wait_for_jobs
        from attnlab.runs.sweep_job import led_sweep

        folder = led_sweep()
        sweep = None if folder is None else SweepOnSlurm(folder)
        points = {initial_job_idx + i: list(each) for i, each in enumerate(job_overrides)}
        joined = {} if sweep is None else self._joined(sweep, points)
        waits = self.params["wait"]
        if joined and waits:
            ids = ", ".join(job.job_id for job in joined.values())
            line = f"waits for jobs that an earlier command gave to Slurm: {ids}"
            print(line, file=sys.stderr)
        new = {number: each for number, each in points.items() if number not in joined}
        jobs = joined | self._submit(sweep, new)
        if not waits:
            return [JobReturn(each, status=JobStatus.COMPLETED) for each in points.values()]

        returned: dict[int, JobReturn] = {}

        def ended(number: int, lost: str | None) -> None:
            if sweep is not None and number in joined:
                sweep.adopt(number)
            if folder is not None and lost is not None:
                folder.record_lost(number, points[number], lost)
            if lost is None:
                returned[number] = _result(jobs[number], points[number])
            else:
                returned[number] = _failed(points[number], JobFailedError(lost))

        wait_for_jobs(jobs, ended)
        return [returned[number] for number in points]

    def _joined(self, sweep: Any, points: dict[int, list[str]]) -> dict[int, "Job[Any]"]:
        """The jobs of those points that an earlier leader submitted, and Slurm still has."""
        import submitit

        joined: dict[int, Job[Any]] = {}
        for number, submitted in sweep.still_queued().items():
            if points.get(number) == submitted.overrides:
                joined[number] = submitit.SlurmJob(submitted.folder, submitted.job)
        return joined

    def _submit(self, sweep: Any, points: dict[int, list[str]]) -> dict[int, "Job[Any]"]:
        from attnlab.runs.slurm_jobs import Submitted

        if not points:
            return {}
        assert self.config is not None
        Path(str(self.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        arguments = []
        for number, overrides in points.items():
            state = Singleton.get_state()
            arguments.append((overrides, "hydra.sweep.dir", number, f"point {number}", state))
        executor = self._executor()
        columns = zip(*arguments, strict=True)
        jobs = dict(zip(points, executor.map_array(self, *columns), strict=True))
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
