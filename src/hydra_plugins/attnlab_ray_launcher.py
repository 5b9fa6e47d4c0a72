"""Hydra's launcher for `launcher=ray`, found here since Hydra looks for plug-ins in this package.

Hydra executes this file outside of `sys.modules`, where a dataclass cannot have annotations that
are text (`from __future__ import annotations`).
"""

from collections.abc import Sequence
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
        # Not at the top: Hydra imports all plug-ins at the start of every command.
        from attnlab.errors import JobFailedError
        from attnlab.experiment.ray_job import run_job_of_sweep
        from attnlab.runs.ray_jobs import RayTasks
        from attnlab.runs.sweep_job import led_sweep

        setup_globals()
        assert self._sweep_folder is not None
        self._sweep_folder.mkdir(parents=True, exist_ok=True)
        points = {initial_job_idx + i: list(each) for i, each in enumerate(job_overrides)}
        returned: dict[int, JobReturn] = {}
        sweep = led_sweep()
        with RayTasks(self.address, self.resources, self.retries) as tasks:
            shared = tasks.share((*self._job_arguments, Singleton.get_state()))
            jobs = {number: (number, overrides, shared) for number, overrides in points.items()}
            for number, result, lost in tasks.run(run_job_of_sweep, jobs, self.workers):
                if lost is None:
                    returned[number] = result
                    continue
                if sweep is not None:
                    sweep.record_lost(number, points[number], lost)
                failed = JobReturn(overrides=points[number], status=JobStatus.FAILED)
                failed.return_value = JobFailedError(lost)
                returned[number] = failed
        return [returned[number] for number in points]
