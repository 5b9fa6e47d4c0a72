"""How a command starts, and how Hydra runs its jobs."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError, JobFailedError, masked_values
from attnlab.experiment.command_callback import command_leads_sweeps, leading_sweeps
from attnlab.experiment.command_help import check_options, help_with_groups_shown
from attnlab.experiment.config_sources import config_folders
from attnlab.experiment.hydra_job import overrides
from attnlab.experiment.override_checks import check_overrides
from attnlab.experiment.user_errors import report_user_errors
from attnlab.runs.mlflow_variables import EXPERIMENT_VARIABLE, URI_VARIABLE
from attnlab.runs.sweep_claims import PointHeldError
from attnlab.runs.sweep_job import (
    exit_with,
    running,
    starting_process,
    sweep_of_job_without_leader,
)
from attnlab.terminal import echo, show_problems

ResultT = TypeVar("ResultT")


def launch(application: Callable[[], Any], leads_sweeps: bool = False) -> None:
    """Run Hydra's application; a user's mistake ends it with sentences and exit code 1.

    leads_sweeps: whether a multirun is a sweep, with records and a run of its own, or merely many
        runs.
    """
    with report_user_errors():
        # A stage that outlives a killed `dvc repro` would write what the next one writes.
        if "DVC_STAGE" in os.environ:
            exit_with(starting_process())
        if help_with_groups_shown():
            return
        check_options(sys.argv[1:])
        check_overrides(sys.argv[1:])
        with leading_sweeps() if leads_sweeps else nullcontext():
            application()


def experiment_job(main: Callable[[DictConfig], ResultT]) -> Callable[[DictConfig], ResultT]:
    """The `main` of a pipeline, as Hydra runs it alone or as one job of a multirun.

    Paths of the config start at the folder that the command was given in, also where
    `hydra.job.chdir` changed the current one. In a multirun a job's error is shown at once, for
    Hydra shows only the first one, at the end of the sweep; then JobFailedError is raised.
    """

    # Launchers pickle this function by value with all that it names, and so it names little.
    @functools.wraps(main)
    def run(config: DictConfig) -> ResultT:
        return _run_job(main, config)

    return run


def _run_job(main: Callable[[DictConfig], ResultT], config: DictConfig) -> ResultT:
    node = HydraConfig.get()
    if node.mode != RunMode.MULTIRUN:
        if command_leads_sweeps():  # what follows imports torch, which takes seconds
            name = readable_name(_as_written(config), folders=config_folders())
            echo(f"{name}: checking its config")
        with chdir(node.runtime.cwd), _same_tracker_after():
            return main(config)

    from attnlab.experiment.shared_points import run_shared

    try:
        return run_shared(functools.partial(_run_point, main), config)
    finally:
        with chdir(node.runtime.cwd):
            _end_sweep_without_leader(config)


def _run_point(
    main: Callable[[DictConfig], ResultT], config: DictConfig, *, waits: bool
) -> ResultT:
    """Run the point of a job in a multirun; see `RunPoint`."""
    node = HydraConfig.get()
    given = masked_values(overrides())
    number, output = node.job.num, Path(node.runtime.output_dir)
    place = f"job {number} ({','.join(sorted(given))})"
    try:
        with (
            running(number, given, output, _as_written(config), config_folders(), waits),
            chdir(node.runtime.cwd),
            _same_tracker_after(),
        ):
            return main(config)
    except PointHeldError:
        raise
    except Exception as error:
        if isinstance(error, ExperimentError):
            show_problems(error.problems, f"{place}: ")
        else:
            print(f"error: {place}:", file=sys.stderr)
            traceback.print_exception(error)
        raise JobFailedError(f"{place} failed") from None


def _end_sweep_without_leader(config: DictConfig) -> None:
    """Close the sweep of this job, if it was the last one and no process leads it any more."""
    folder = sweep_of_job_without_leader()
    if folder is None:
        return
    from attnlab.runs.sweep_leader import close_if_over, is_over

    if not is_over(folder):
        return
    from attnlab.experiment.composition import check

    experiment = check(config)
    close_if_over(folder, experiment.tracking, experiment.paths.runs_folder, experiment.task.view)


def _as_written(config: DictConfig) -> Any:
    """The config with its interpolations, of which some may be wrong."""
    return OmegaConf.to_container(config, resolve=False)


@contextmanager
def _same_tracker_after() -> Iterator[None]:
    """Restore MLflow's environment variables after a job.

    Lightning's MLFlowLogger sets them, and the next job would follow them.
    """
    before = {name: os.environ.get(name) for name in (URI_VARIABLE, EXPERIMENT_VARIABLE)}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
