"""Hydra's launcher for `launcher=ray`, found here since Hydra looks for plug-ins in this package.

Hydra executes this file outside of `sys.modules`, where a dataclass cannot have annotations that
are text (`from __future__ import annotations`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class RayTasksConfig:
    """The settings of the launcher; see `attnlab.runs.sweep_settings.Ray`."""

    _target_: str = "hydra_plugins.attnlab_ray_launcher.RayTasksLauncher"
    workers: Any = 8
    address: Any = None
    cpus: Any = 1
    gpus: Any = 0
    memory_gb: Any = None
    retries: Any = 3


ConfigStore.instance().store(
    group="hydra/launcher", name="attnlab_ray", node=RayTasksConfig(), provider="attnlab"
)


class RayTasksLauncher(Launcher):
    """Each job is a task of Ray."""

    def __init__(
        self, workers: int, address: str | None, cpus: int, gpus: int, memory_gb: Any, retries: int
    ) -> None:
        self.workers, self.address, self.retries = workers, address, retries
        self.resources: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus}
        if memory_gb is not None:
            self.resources["memory"] = int(memory_gb * 2**30)
        self._job_arguments: tuple[Any, ...] = ()
        self._sweep_folder: Path | None = None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self._job_arguments = (hydra_context, task_function, config)
        self._sweep_folder = Path(str(config.hydra.sweep.dir))

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs on the cluster, `workers` at a time, and wait for all of them."""
        points = {initial_job_idx + i: list(each) for i, each in enumerate(job_overrides)}
        waiting = list(points)
        returned: dict[int, JobReturn] = {}
        with self.places() as places:
            while waiting or places.count:
                while waiting and places.count < self.workers:
                    number = waiting.pop(0)
                    places.submit({number: points[number]})
                returned |= places.ended()
        return [returned[number] for number in points]

    @contextmanager
    def places(self) -> Iterator["RayPlaces"]:
        """A connection to the cluster, on which points can be started one by one."""
        # Not at the top: Hydra imports all plug-ins at the start of every command.
        from attnlab.experiment.ray_job import run_job_of_sweep
        from attnlab.runs.ray_jobs import RayTasks

        setup_globals()
        assert self._sweep_folder is not None
        self._sweep_folder.mkdir(parents=True, exist_ok=True)
        with RayTasks(self.address, self.resources, self.retries) as tasks:
            shared = tasks.share((*self._job_arguments, Singleton.get_state()))
            yield RayPlaces(tasks.calls(run_job_of_sweep), shared)


class RayPlaces:
    """The points that run on a cluster (see `attnlab.runs.places.Submitting`)."""

    def __init__(self, calls: Any, shared: Any) -> None:
        self._calls, self._shared = calls, shared
        self._overrides: dict[int, list[str]] = {}

    @property
    def count(self) -> int:
        return len(self._calls)

    def submit(self, points: Mapping[int, list[str]]) -> None:
        self._overrides |= points
        for number, overrides in points.items():
            self._calls.start(number, (number, overrides, self._shared))

    def ended(self) -> dict[int, JobReturn]:
        from attnlab.errors import JobFailedError
        from attnlab.runs.sweep_job import led_sweep

        number, result, lost = self._calls.ended()
        if lost is None:
            return {number: result}
        overrides = self._overrides[number]
        sweep = led_sweep()
        if sweep is not None:
            sweep.record_lost(number, overrides, lost)
        failed = JobReturn(overrides=overrides, status=JobStatus.FAILED)
        failed.return_value = JobFailedError(lost)
        return {number: failed}
