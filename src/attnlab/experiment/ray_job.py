"""A job of a sweep as Hydra runs it, in a process of Ray's."""

from __future__ import annotations

from contextlib import chdir
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, run_job, setup_globals
from omegaconf import open_dict


def run_job_of_sweep(number: int, overrides: list[str], shared: tuple[Any, ...]) -> JobReturn:
    """Run a job.

    Args:
        number: of the point.
        shared: Hydra's context, the command's function, the config of the sweep, and the state of
            Hydra's singletons.
    """
    hydra_context, task_function, config, state = shared
    setup_globals()
    Singleton.set_state(state)
    # Hydra writes into the job's config where it is composed, and relative paths count from there.
    with chdir(config.hydra.runtime.cwd):
        job_config = hydra_context.config_loader.load_sweep_config(config, overrides)
        with open_dict(job_config):
            job_config.hydra.job.id = f"{config.hydra.job.name}_{number}"
            job_config.hydra.job.num = number
        HydraConfig.instance().set_config(job_config)
        return run_job(
            hydra_context=hydra_context,
            task_function=task_function,
            config=job_config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )
