"""What is added where Hydra itself acts: each config is checked as it is composed, and what fails is a sentence.

Nor does it write where a link leads that came with a config, or hand a shell what that would take for a command.

A look beforehand is not enough. What is composed may depend on the clock, the environment or a file that was changed
since; a sweeper chooses within intervals, and among more points than are tried before the sweep starts. Hydra acts on
the `hydra` node of a config, its callbacks, loggers and environment, before it calls a job; so that node is looked at
where it is composed, in whichever process that is.
"""

from __future__ import annotations

import functools
import itertools
import re
import traceback
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra._internal import logging_config
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException, InstantiationException
from hydra.plugins.completion_plugin import CompletionPlugin
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

import attnlab
from attnlab.config.secrets import told_override
from attnlab.errors import ExperimentError
from attnlab.experiment.hydra_node import hydra_problems, overrides_problems, searchpath_problems, write_out

_HERE, _LIBRARY = Path(__file__).parent, Path(attnlab.__file__).parent
_compose = ConfigLoaderImpl.load_configuration
_compose_job = ConfigLoaderImpl.load_sweep_config
_look_into_sources = ConfigRepository.initialize_sources
_configure_logging = logging_config.configure_logging
_complete = CompletionPlugin._query
# A shell expands what it is offered: `$(...)` in a name or value of somebody's config would run.
_OFFERED = re.compile(r"[\w./=+~@:,-]+")


def settle_in() -> None:
    """Put these in Hydra's place; done again, it changes nothing."""
    ConfigRepository.initialize_sources = _checked_sources  # type: ignore[method-assign]
    ConfigLoaderImpl.load_configuration = _checked_config  # type: ignore[method-assign]
    ConfigLoaderImpl.load_sweep_config = _checked_job  # type: ignore[method-assign]
    logging_config.configure_logging = _told_logging
    CompletionPlugin._query = _plain_completions  # type: ignore[method-assign]
    # Hydra would announce every failure with "Error executing job with overrides: [...]" before it raises.
    JobReturn.return_value = JobReturn.return_value.getter(_return_value)  # type: ignore[method-assign,attr-defined]


def composed_by(loader: ConfigLoader, name: str, overrides: list[str]) -> DictConfig:
    """The config with its `hydra` node as it is, for whoever looks at that himself before anything is done with it.

    Raises ExperimentError for a place to look for configs that Hydra would import.
    """
    assert isinstance(loader, ConfigLoaderImpl)
    return _compose(loader, name, overrides, RunMode.RUN, from_shell=False)


@functools.wraps(_compose)
def _checked_config(
    self: ConfigLoaderImpl, config_name: str | None, overrides: list[str], *arguments: Any, **more: Any
) -> DictConfig:
    """A config that Hydra acts on; raises ExperimentError where foreign code could run by it."""
    config = _compose(self, config_name, overrides, *arguments, **more)
    problems = hydra_problems(config) or overrides_problems(config, overrides) or write_out(config)
    if problems:
        raise ExperimentError(problems)
    return config


@functools.wraps(_compose_job)
def _checked_job(self: ConfigLoaderImpl, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
    """The same of a job, which is told."""
    try:
        return _compose_job(self, master_config, sweep_overrides)
    except ExperimentError as error:
        of_job = ",".join(map(told_override, sweep_overrides))
        raise ExperimentError([f"{problem} (in the job with {of_job})" for problem in error.problems]) from None


@functools.wraps(_look_into_sources)
def _checked_sources(self: ConfigRepository, config_search_path: ConfigSearchPath) -> None:
    """Look where configs are; raises ExperimentError where a config or a command names a package for that."""
    named = [
        place.path for place in config_search_path.get_path() if str(place.provider).startswith("hydra.searchpath")
    ]
    problems = searchpath_problems(named)
    if problems:
        raise ExperimentError(problems)
    _look_into_sources(self, config_search_path)


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


@functools.wraps(_complete)
def _plain_completions(self: CompletionPlugin, config_name: str | None, line: str) -> list[str]:
    """What a shell may offer to go on with."""
    return [word for word in _complete(self, config_name, line) if _OFFERED.fullmatch(word)]


@contextmanager
def its_own_faults_told() -> Iterator[None]:
    """Raise ExperimentError for what Hydra, a sweeper or a launcher stumbles over in the config's `hydra` node.

    They check few of their settings. An error in code of ours is none of theirs, and keeps its traceback.
    """
    try:
        yield
    except Exception as error:
        says_it_itself = isinstance(error, (ExperimentError, HydraException, OmegaConfBaseException, OSError))
        if says_it_itself and not isinstance(error, InstantiationException):
            raise
        files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        inside = itertools.dropwhile(_is_ours, files)
        if any(_is_ours(file) and file != Path(__file__) for file in inside):
            raise
        if isinstance(error, BrokenExecutor):
            raise ExperimentError(
                "a worker of the sweep is gone: killed, as where memory runs out; the same command goes on, with a "
                "smaller launcher.workers if that was it"
            ) from error
        cause = error.__cause__ if isinstance(error, InstantiationException) and error.__cause__ else error
        reason = " ".join(f"{type(cause).__name__}: {cause}".removesuffix(": ").split())
        raise ExperimentError(
            f"hydra: the sweeper, the launcher or the help text of this node of the config cannot be used ({reason}); "
            "choose with sweep=... and launcher=..., and take out what is set of them there"
        ) from error


def _is_ours(file: Path) -> bool:
    return file.is_relative_to(_HERE) or file.is_relative_to(_LIBRARY)


def _return_value(self: JobReturn) -> Any:
    if self.status is JobStatus.FAILED:
        raise self._return_value
    return self._return_value
