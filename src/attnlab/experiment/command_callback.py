"""The Hydra callback of every command: sweeps, dry runs, and commands whose job failed."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

from hydra.core.utils import JobReturn
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig

from attnlab.errors import ExperimentError
from attnlab.experiment.hydra_config import choose_direction
from attnlab.experiment.user_errors import report_user_errors
from attnlab.project import pipeline_command

if TYPE_CHECKING:
    from attnlab.tasks.task import Experiment

# What is closed at the end of a sweep; None in a command that leads none.
_SWEEP: ContextVar[ExitStack | None] = ContextVar("sweep", default=None)


@contextmanager
def leading_sweeps() -> Iterator[None]:
    """Lead a multirun as a sweep, which ends with this block.

    Hydra calls `on_multirun_end` only where no job failed, so the callback cannot end it.
    """
    with ExitStack() as stack:
        token = _SWEEP.set(stack)
        try:
            yield
        finally:
            _SWEEP.reset(token)


def command_leads_sweeps() -> bool:
    """Whether a multirun of this command is a sweep; so it is for training alone."""
    return _SWEEP.get() is not None


class CommandCallback(Callback):
    """Starts sweeps and dry runs, and ends a command whose job failed; see conf/config.yaml.

    It comes after all other callbacks. It ends the process itself: Hydra would make a warning of an
    exception, and go on.
    """

    def on_run_start(self, config: DictConfig, **more: Any) -> None:
        if config.get("dry_run") is True:
            from attnlab.experiment.composition import check

            with _ending_the_process(), report_user_errors():
                _dry_run([check(config)], 1)

    def on_multirun_start(
        self, config: DictConfig, config_name: str | None = None, **more: Any
    ) -> None:
        from attnlab.experiment.sweep_plan import SweepPlan  # imports torch, which takes seconds

        with _ending_the_process(), report_user_errors():
            choose_direction(config)
            plan = SweepPlan.of(config, config_name)
            if plan.experiments[0].dry_run:
                _dry_run(plan.experiments, plan.points)
            ends_with_command = _SWEEP.get()
            if ends_with_command is not None:
                ends_with_command.enter_context(plan.lead())

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **more: Any) -> None:
        # Launchers keep what all jobs returned until the last one ends, with two configs of each:
        # 5 GB of ten thousand points. Sweepers read the value alone.
        if config.hydra.mode == RunMode.MULTIRUN:
            job_return.cfg = job_return.hydra_cfg = None

    def on_run_end(self, config: DictConfig, **more: Any) -> None:
        # Hydra itself would print the overrides of a failed job, in which there may be a password.
        with _ending_the_process(), report_user_errors(), redirect_stderr(io.StringIO()):
            _ = more["job_return"].return_value  # raises the job's error


def _dry_run(experiments: Sequence[Experiment], points: int) -> NoReturn:
    """Print what these experiments would cost, and end before Hydra makes a folder for them."""
    if not command_leads_sweeps():
        raise ExperimentError(f"dry_run is for {pipeline_command('train')}; leave it out")
    from attnlab.experiment.dry_run import show_costs  # imports Lightning, which takes seconds

    show_costs(experiments, points)
    sys.exit(0)


@contextmanager
def _ending_the_process() -> Iterator[None]:
    try:
        yield
    except Exception:
        traceback.print_exc()
        sys.exit(1)
