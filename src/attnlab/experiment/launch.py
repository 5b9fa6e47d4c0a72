"""How a command starts and runs its jobs, and what it shows: mistakes as sentences, and lines."""

from __future__ import annotations

import errno
import functools
import io
import os
import signal
import string
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError, JobFailedError, masked_values
from attnlab.experiment.hydra_config import (
    compose_config,
    groups,
    hydra_error_sentence,
    is_of_hydra,
)
from attnlab.experiment.hydra_job import overrides
from attnlab.experiment.override_text import unreadable
from attnlab.project import pipeline_command, with_pipeline_commands
from attnlab.runs.mlflow_variables import EXPERIMENT_VARIABLE, URI_VARIABLE
from attnlab.runs.sweep_job import exit_with, running, starting_process
from attnlab.terminal import echo, print_any_character, show_problems

if TYPE_CHECKING:
    from attnlab.tasks.task import Experiment

ENVIRONMENT = {
    # Dependencies that would call home, or warn about how they were started.
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # oneDNN, and torch around it, store a kernel for each shape that they met, a thousand of them
    # by default, and batches come in many shapes: training in bfloat16 grew by gigabytes. A step
    # takes some forty, and making them anew takes a twentieth of its time. Read when torch starts.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256",
    "LRU_CACHE_CAPACITY": "16",
    # Otherwise Hydra prints what failed in its own words, and ends the process.
    "HYDRA_FULL_ERROR": "1",
}
# Which Hydra takes with dashes.
HYDRA_OPTIONS = (
    "cd", "cfg", "cn", "config-dir", "config-name", "config-path", "cp", "experimental-rerun",
    "help", "hydra-help", "info", "multirun", "package", "resolve", "run", "sc", "shell-completion",
    "version",
)  # fmt: skip
# A full disk, a folder that may not be written to, a mounted one that cannot be replaced: no fault
# of the program.
MACHINE_FAULTS = {
    errno.EACCES, errno.EBUSY, errno.EDQUOT, errno.EFBIG, errno.ENAMETOOLONG, errno.ENOSPC,
    errno.ENOTDIR, errno.EPERM, errno.EROFS, errno.EXDEV,
}  # fmt: skip


# What is closed at the end of a sweep; None in a command that leads none.
_SWEEP: ContextVar[ExitStack | None] = ContextVar("sweep", default=None)


def launch(application: Callable[[], Any], leads_sweeps: bool = False) -> None:
    """Run Hydra's application; a user's mistake ends it with sentences and exit code 1.

    leads_sweeps: whether a multirun is a sweep, with records and a run of its own, or merely many
        runs.
    """
    with report_user_errors():
        # A stage that outlives a killed `dvc repro` would write what the next one writes.
        if "DVC_STAGE" in os.environ:
            exit_with(starting_process())
        arguments = sys.argv[1:]
        options = [text for text in arguments if text.startswith("-")]
        if help_shown() and not set(options) - {"-h", "--help"}:
            overrides = [text for text in arguments if text not in options]
            print("", help_text(overrides), sep="\n")
            return
        _check_dashes(arguments)
        # Hydra calls `on_multirun_end` only where no job failed.
        with ExitStack() as stack:
            token = _SWEEP.set(stack if leads_sweeps else None)
            try:
                application()
            finally:
                _SWEEP.reset(token)


def _check_dashes(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for a setting written as an option, such as `--seed=3`.

    Hydra would show its own options instead.
    """
    for text in arguments:
        name = text.partition("=")[0].lstrip("-")
        is_of_hydra_itself = any(option.startswith(name) for option in HYDRA_OPTIONS)
        if text.startswith("-") and "=" in text and not is_of_hydra_itself:
            raise ExperimentError(unreadable(text))


def help_shown() -> bool:
    """Whether the command asks for help; then its script's docstring is printed."""
    is_asked = bool({"-h", "--help"} & set(sys.argv[1:]))
    if is_asked:
        print(with_pipeline_commands(str(sys.modules["__main__"].__doc__).strip()))
    return is_asked


def help_text(overrides: list[str]) -> str:
    """What Hydra shows for --help; Hydra itself takes seconds to list the groups."""
    config = compose_config(overrides)
    template = string.Template(OmegaConf.select(config, "hydra.help.template"))
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    listed = "".join(f"{group}: {', '.join(choices)}\n" for group, choices in groups().items())
    return template.safe_substitute(APP_CONFIG_GROUPS=listed, CONFIG=OmegaConf.to_yaml(config))


def experiment_job(main: Callable[[DictConfig], Any]) -> Callable[[DictConfig], Any]:
    """The `main` of a pipeline, as Hydra runs it alone or as one job of a multirun.

    Paths of the config start at the folder that the command was given in, also where
    `hydra.job.chdir` changed the current one. In a multirun a job's error is shown at once, for
    Hydra shows only the first one, at the end of the sweep; then JobFailedError is raised.
    """

    # Launchers pickle this function by value with all that it names, and so it names little.
    @functools.wraps(main)
    def run(config: DictConfig) -> Any:
        return _run_job(main, config)

    return run


def _run_job(main: Callable[[DictConfig], Any], config: DictConfig) -> Any:
    node = HydraConfig.get()
    if node.mode != RunMode.MULTIRUN:
        if _SWEEP.get() is not None:  # what follows imports torch, which takes seconds
            echo(f"{readable_name(_as_written(config))}: checking its config")
        with chdir(node.runtime.cwd), _same_tracker_after():
            return main(config)

    given = masked_values(overrides())
    place = f"job {node.job.num} ({','.join(sorted(given))})"
    output = Path(node.runtime.output_dir)
    try:
        with (
            running(node.job.num, given, output, _as_written(config)),
            chdir(node.runtime.cwd),
            _same_tracker_after(),
        ):
            return main(config)
    except Exception as error:
        if isinstance(error, ExperimentError):
            show_problems(error.problems, f"{place}: ")
        else:
            print(f"error: {place}:", file=sys.stderr)
            traceback.print_exception(error)
        raise JobFailedError(f"{place} failed") from None


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


def dry_run(experiments: Sequence[Experiment], points: int) -> NoReturn:
    """Print what these experiments would cost, and end before Hydra makes a folder for them."""
    if _SWEEP.get() is None:
        raise ExperimentError(f"dry_run is for {pipeline_command('train')}; leave it out")
    from attnlab.experiment.dry_run import show_costs  # imports Lightning, which takes seconds

    show_costs(experiments, points)
    sys.exit(0)


class CommandCallback(Callback):
    """Starts sweeps and dry runs, and ends a command whose job failed; see conf/config.yaml.

    It comes after all other callbacks. It ends the process itself: Hydra would make a warning of an
    exception, and go on.
    """

    def on_run_start(self, config: DictConfig, **more: Any) -> None:
        if config.get("dry_run") is True:
            from attnlab.experiment.composition import check

            with _ending_the_process(), report_user_errors():
                dry_run([check(config)], 1)

    def on_multirun_start(
        self, config: DictConfig, config_name: str | None = None, **more: Any
    ) -> None:
        from attnlab.experiment.sweep_plan import SweepPlan  # imports torch, which takes seconds

        with _ending_the_process(), report_user_errors():
            plan = SweepPlan.of(config, config_name)
            if plan.experiments[0].dry_run:
                dry_run(plan.experiments, plan.points)
            sweep = _SWEEP.get()
            if sweep is not None:
                sweep.enter_context(plan.lead())

    def on_run_end(self, config: DictConfig, **more: Any) -> None:
        # Hydra itself would print the overrides of a failed job, in which there may be a password.
        with _ending_the_process(), report_user_errors(), redirect_stderr(io.StringIO()):
            _ = more["job_return"].return_value  # raises the job's error


@contextmanager
def _ending_the_process() -> Iterator[None]:
    try:
        yield
    except Exception:
        traceback.print_exc()
        sys.exit(1)


@contextmanager
def report_user_errors() -> Iterator[None]:
    """End the process with a message for an error that the user can fix.

    Any other error keeps its traceback.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    print_any_character()
    try:
        try:
            _check_encoding([*sys.argv[1:], os.getcwd()])
            yield
        except JobFailedError:
            _fail(["jobs of the sweep failed; their errors stand above"])
        except ExperimentError as error:
            _fail(error.problems)
        except KeyboardInterrupt:
            print("stopped by Ctrl-C", file=sys.stderr)
            sys.exit(130)
        except BrokenPipeError:
            raise
        except Exception as error:
            of_hydra = is_of_hydra(error)
            # Hydra's error for a missing config is an OSError, too, but of no system call.
            if (
                isinstance(error, OSError)
                and error.errno
                and (of_hydra or error.errno in MACHINE_FAULTS)
            ):
                _fail([f"{error.filename or 'a file'} cannot be used: {error.strerror}"])
            # Lightning's, of what a config passes on to it
            if type(error).__name__ == "MisconfigurationException":
                _fail([str(error)])
            if type(error).__name__ == "FailedJobError":  # submitit's, of what sbatch says
                _fail(
                    [
                        "launcher: Slurm does not take the jobs: "
                        f"{'; '.join(str(error).splitlines())}"
                    ]
                )
            if not of_hydra:
                raise
            _fail([hydra_error_sentence(error, sys.argv[1:])])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has gone away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def _check_encoding(texts: Sequence[str]) -> None:
    """Raise ExperimentError for characters that the locale cannot read.

    No file could be written with them.
    """
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(text).decode(errors="backslashreplace")
            raise ExperimentError(
                f"{shown!r} cannot be read in the terminal's locale, whose encoding is "
                f"{sys.getfilesystemencoding()}; set LC_ALL=C.UTF-8, or PYTHONUTF8=1"
            ) from None


def _fail(problems: list[str]) -> NoReturn:
    show_problems(problems)
    sys.exit(1)
