"""How a command starts and runs its jobs, and what it shows: mistakes as sentences, and lines."""

from __future__ import annotations

import errno
import importlib
import io
import logging
import os
import signal
import string
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import Any, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError, JobFailedError, masked, masked_values
from attnlab.experiment.experiment import Experiment, overrides
from attnlab.experiment.hydra_config import compose_config, groups, is_of_hydra
from attnlab.experiment.hydra_config import sentence as hydra_sentence
from attnlab.experiment.override_text import unreadable
from attnlab.runs.mlflow_variables import EXPERIMENT_VARIABLE, URI_VARIABLE
from attnlab.runs.sweep_job import end_with, running, starter

log = logging.getLogger("attnlab")

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
STAGES = {
    "chain": "attnlab.experiment.chain",
    "prepare": "attnlab.experiment.preparation",
    "evaluate": "attnlab.experiment.evaluation",
    "report": "attnlab.report.reporting",
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


def launch(application: Callable[[], Any], leads_sweeps: bool = False) -> None:
    """Run Hydra's application; a user's mistake ends it with sentences and exit code 1.

    leads_sweeps: whether a multirun is a sweep, with records and a run of its own, or merely many
        runs.
    """
    with mistakes_as_sentences():
        # A stage that outlives a killed `dvc repro` would write what the next one writes
        if "DVC_STAGE" in os.environ:
            end_with(starter())
        arguments = sys.argv[1:]
        if help_shown() and not any(
            text.startswith("-") and text not in ("-h", "--help") for text in arguments
        ):
            print("", help_text([text for text in arguments if not text.startswith("-")]), sep="\n")
            return
        _check_dashes(arguments)
        global _leader
        with ExitStack() as stack:  # Hydra calls `on_multirun_end` only where no job failed
            _leader = stack if leads_sweeps else None
            application()


def _check_dashes(arguments: Sequence[str]) -> None:
    """Raise ExperimentError for a setting written as an option, `--seed=3`, of which Hydra shows
    its options.
    """
    for text in arguments:
        name = text.partition("=")[0].lstrip("-")
        is_of_hydra_itself = any(option.startswith(name) for option in HYDRA_OPTIONS)
        if text.startswith("-") and "=" in text and not is_of_hydra_itself:
            raise ExperimentError(unreadable(text))


# What is closed at the end of the sweep; None in a command that leads none
_leader: ExitStack | None = None


def help_shown() -> bool:
    """Whether the command asks for help; then its script's docstring is printed."""
    is_asked = bool({"-h", "--help"} & set(sys.argv[1:]))
    if is_asked:
        print(str(sys.modules["__main__"].__doc__).strip())
    return is_asked


def help_text(overrides: list[str]) -> str:
    """What Hydra shows for --help; Hydra itself takes seconds to list the groups."""
    config = compose_config(overrides)
    template = string.Template(OmegaConf.select(config, "hydra.help.template"))
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    listed = "".join(f"{group}: {', '.join(choices)}\n" for group, choices in groups().items())
    return template.safe_substitute(APP_CONFIG_GROUPS=listed, CONFIG=OmegaConf.to_yaml(config))


def run_job(stage: str, config: DictConfig) -> Any:
    """Check the config that Hydra composed, and run `main` of the stage's module with it.

    The stage is imported after the check, so that a wrong value is refused at once. Paths of the
    config start at the folder that the command was given in, also where `hydra.job.chdir` changed
    the current one.

    In a multirun the job's error is shown at once, for Hydra shows only the first one, at the end
    of the sweep; then JobFailedError is raised.
    """
    node = HydraConfig.get()
    written: Any = OmegaConf.to_container(config, resolve=False)
    if node.mode != RunMode.MULTIRUN:
        if stage == "chain":  # the check imports torch, which takes seconds
            say(f"{readable_name(written)}: checking its config")
        return _run(stage, config)
    given = masked_values(overrides())
    place = f"job {node.job.num} ({','.join(sorted(given))})"
    try:
        with running(node.job.num, given, Path(node.runtime.output_dir), written):
            return _run(stage, config)
    except Exception as error:
        if isinstance(error, ExperimentError):
            show_problems(error.problems, f"{place}: ")
        else:
            print(f"error: {place}:", file=sys.stderr)
            traceback.print_exception(error)
        raise JobFailedError(f"{place} failed") from None


def _run(stage: str, config: DictConfig) -> Any:
    from attnlab.experiment.composition import check, with_task_of_model

    with chdir(HydraConfig.get().runtime.cwd), _same_tracker_after():
        experiment = check(with_task_of_model(config) if stage == "evaluate" else config)
        return importlib.import_module(STAGES[stage]).main(experiment)


@contextmanager
def _same_tracker_after() -> Iterator[None]:
    """Restore MLflow's variables behind a job: Lightning's MLFlowLogger sets them, and the next job
    would obey.
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
    """Print what these experiments would cost, and end the process before Hydra makes a folder for
    them.
    """
    if _leader is None:
        raise ExperimentError("dry_run is for pipelines/train.py; leave it out")
    importlib.import_module("attnlab.experiment.dry_run").main(experiments, points)
    sys.exit(0)


class CommandCallback(Callback):
    """Starts sweeps and dry runs, and ends a command whose job failed, after all other callbacks;
    see conf/config.yaml.

    It ends the process itself: Hydra would make a warning of an exception, and go on.
    """

    def on_run_start(self, config: DictConfig, **more: Any) -> None:
        if config.get("dry_run") is True:
            from attnlab.experiment.composition import check

            with _ending_the_process(), mistakes_as_sentences():
                dry_run([check(config)], 1)

    def on_multirun_start(
        self, config: DictConfig, config_name: str | None = None, **more: Any
    ) -> None:
        from attnlab.experiment.sweep_plan import SweepPlan  # imports torch, which takes seconds

        with _ending_the_process(), mistakes_as_sentences():
            plan = SweepPlan.of(config, config_name)
            if plan.experiments[0].dry_run:
                dry_run(plan.experiments, plan.points)
            if _leader is not None:
                _leader.enter_context(plan.led())

    def on_run_end(self, config: DictConfig, **more: Any) -> None:
        # Hydra itself would print the overrides of a failed job, in which there may be a password.
        with _ending_the_process(), mistakes_as_sentences(), redirect_stderr(io.StringIO()):
            _ = more["job_return"].return_value  # raises the job's error


@contextmanager
def _ending_the_process() -> Iterator[None]:
    try:
        yield
    except Exception:
        traceback.print_exc()
        sys.exit(1)


@contextmanager
def mistakes_as_sentences() -> Iterator[None]:
    """End the process with the sentences of an error that the user can mend; any other error keeps
    its traceback.
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
            _fail([hydra_sentence(error, sys.argv[1:])])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has gone away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def print_any_character() -> None:
    """Have stdout and stderr show a character that their encoding lacks as `\\ud55c`, instead of
    raising an error.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
            with suppress(OSError):  # of a stream whose descriptor was redirected since
                stream.reconfigure(errors="backslashreplace")


def _check_encoding(texts: Sequence[str]) -> None:
    """Raise ExperimentError for characters that the locale cannot read; no file could be written
    with them.
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


def show_problems(problems: list[str], place: str = "") -> None:
    for problem in problems:
        print(f"error: {place}{masked(problem)}", file=sys.stderr)


def _fail(problems: list[str]) -> NoReturn:
    show_problems(problems)
    sys.exit(1)


def say(text: str) -> None:
    """Print a line, and write it to the log file in the folder of the run."""
    print(text)
    log.info(text)
