"""What is added where Hydra itself acts: each job's config is checked, and what fails in there is told in a sentence.

A sweeper chooses within intervals, and among more points than are tried before the sweep starts. Hydra then acts on the
`hydra` node of a job, its loggers and its environment, before it calls the job; so that node is looked at where it is
composed, in whichever process that is.
"""

from __future__ import annotations

import functools
from typing import Any

from hydra._internal import logging_config
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

from attnlab.composition.error import ExperimentError
from attnlab.composition.secrets import told_override
from hydra_node import hydra_problems

_compose_job = ConfigLoaderImpl.load_sweep_config
_configure_logging = logging_config.configure_logging
_SEARCHPATH = "hydra.searchpath"


def settle_in() -> None:
    """Put these in Hydra's place; done again, it changes nothing."""
    ConfigLoaderImpl.load_sweep_config = _checked_job  # type: ignore[method-assign]
    logging_config.configure_logging = _told_logging
    # Hydra would announce every failure with "Error executing job with overrides: [...]" before it raises.
    JobReturn.return_value = JobReturn.return_value.getter(_return_value)  # type: ignore[method-assign,attr-defined]


@functools.wraps(_compose_job)
def _checked_job(self: ConfigLoaderImpl, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
    """The config of a job; raises ExperimentError where foreign code could run by it."""
    of_job = ",".join(map(told_override, sweep_overrides))
    # Hydra would import a package of it while it composes.
    if any(text.lstrip("+~").startswith(_SEARCHPATH) for text in sweep_overrides):
        raise ExperimentError(f"{_SEARCHPATH} is the same for all jobs of a sweep; got a job with {of_job}")
    config = _compose_job(self, master_config, sweep_overrides)
    problems = hydra_problems(config)
    if problems:
        raise ExperimentError([f"{problem} (in the job with {of_job})" for problem in problems])
    return config


def _told_logging(config: dict[str, Any]) -> None:
    """Set loggers up; raises ExperimentError where `logging` finds a fault that `hydra_problems` does not know."""
    try:
        _configure_logging(config)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        reason = " ".join(f"{error}: {error.__cause__}".removesuffix(": None").split())
        raise ExperimentError(
            f"hydra.job_logging or hydra.hydra_logging cannot be used: {reason}; correct it there, or choose "
            "hydra/job_logging=default and hydra/hydra_logging=default"
        ) from error


def _return_value(self: JobReturn) -> Any:
    if self.status is JobStatus.FAILED:
        raise self._return_value
    return self._return_value
