"""What a command shows, mistakes as sentences among it; and the settings of the commands that compose no experiment."""

from __future__ import annotations

import errno
import logging
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import cleandoc
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml  # type: ignore[import-untyped]
from omegaconf import DictConfig, OmegaConf

from attnlab.config.secrets import masked
from attnlab.errors import ExperimentError
from attnlab.experiment.rewording import CONF, is_of_hydra, sentence
from attnlab.sweeps.job_failed import JobFailedError

log = logging.getLogger("attnlab")
SettingsT = TypeVar("SettingsT", bound="Settings")

ENVIRONMENT = {
    # Dependencies that would call home, or warn about how they were started.
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "TOKENIZERS_PARALLELISM": "false",
    # oneDNN, and torch around it, store a product for each shape that they met, a thousand of them by default, and
    # batches come in many shapes: training in bfloat16 grew by gigabytes. Read when torch starts.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
    "LRU_CACHE_CAPACITY": "16",
    # Otherwise Hydra prints what failed in its own words, and ends the process.
    "HYDRA_FULL_ERROR": "1",
}
# A full disk, a folder that may not be written to, a mounted one that cannot be replaced: no fault of the program.
MACHINE_FAULTS = {
    errno.EACCES, errno.EBUSY, errno.EDQUOT, errno.EFBIG, errno.ENAMETOOLONG, errno.ENOSPC, errno.ENOTDIR, errno.EPERM,
    errno.EROFS, errno.EXDEV,
}  # fmt: skip


@contextmanager
def mistakes_as_sentences() -> Iterator[None]:
    """End the process with the sentences of an error that the user can mend; any other error keeps its traceback."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        yield
    except JobFailedError:
        _fail(["jobs of the sweep failed; their errors stand above"])
    except ExperimentError as error:
        _fail(error.problems)
    except BrokenPipeError:
        if not _has_lost_its_reader():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if is_of_hydra(error):
            _fail([sentence(error)])
        if not isinstance(error, OSError) or error.errno not in MACHINE_FAULTS:
            raise
        _fail([f"{error.filename or 'a file'} cannot be used: {error.strerror}"])


def show_problems(problems: list[str], place: str = "") -> None:
    for problem in problems:
        print(f"error: {place}{masked(problem)}", file=sys.stderr)


def _fail(problems: list[str]) -> NoReturn:
    show_problems(problems)
    sys.exit(1)


def _has_lost_its_reader() -> bool:
    """Whether the reader of our output has gone away, as `head` does; a worker's or a server's end is another case."""
    for stream in (1, 2):
        poll = select.poll()
        poll.register(stream, 0)  # errors are reported unasked
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            return True
    return False


def say(text: str) -> None:
    """Print a line, and write it to the log file in the folder of the run."""
    print(text)
    log.info(text)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Gives `show(what, done, total)`: one bar for each kind of work, on terminals only."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    bars_of: dict[str, int] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def show(what: str, done: int, total: int) -> None:
            if what not in bars_of:
                bars_of[what] = bars.add_task(what, total=total)
            bars.update(bars_of[what], completed=done, total=total)  # type: ignore[arg-type]

        yield show


@dataclass
class RunsPath:
    """runs: the folder of experiments, prepared data and MLflow's database."""

    runs: str = "runs"


@dataclass
class Settings:
    """What the commands around the stages share; a command's own settings are further fields with their defaults.

    tracking: a choice of conf/tracking, and then the tracker; its settings are tracking.uri, tracking.experiment, ...
    """

    paths: RunsPath = field(default_factory=RunsPath)
    tracking: Any = "mlflow"

    def problems(self) -> list[str]:
        """What is wrong with settings whose types are right."""
        return [] if self.paths.runs else ["paths.runs must be text that is not empty, got ''"]

    @property
    def runs_folder(self) -> Path:
        from attnlab.config.paths import runs_folder

        return runs_folder(self.paths.runs)


def read_settings(kind: type[SettingsT], arguments: Sequence[str]) -> SettingsT:
    """The defaults of a command with `key=value` arguments in their place; --help shows them, and ends the process.

    Raises ExperimentError for settings that are unknown or wrong.
    """
    from attnlab.config.binding import bind
    from attnlab.tracking.settings import Tracking

    config = OmegaConf.structured(kind)
    if {"-h", "--help"} & set(arguments):
        description = str(sys.modules["__main__"].__doc__).strip()
        print(description, "Settings: change with key=value", cleandoc(str(kind.__doc__)), sep="\n\n", end="\n\n")
        print(OmegaConf.to_yaml(config))
        sys.exit()
    given = {}
    for text in arguments:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or text.startswith("-"):
            raise ExperimentError(f"this command takes settings written key=value, got {text!r}; --help shows them")
        given[key.strip()] = value
    choice, choices = given.pop("tracking", "mlflow"), sorted(path.stem for path in (CONF / "tracking").glob("*.yaml"))
    if choice not in choices:
        raise ExperimentError(f"tracking must be one of {', '.join(choices)}; got {choice!r}")
    config.tracking = OmegaConf.load(CONF / "tracking" / f"{choice}.yaml")
    try:
        for key, value in given.items():
            if key.startswith("tracking."):
                config.merge_with(DictConfig({"tracking": OmegaConf.from_dotlist([f"{key}={value}"]).tracking}))
            else:  # as text: an identity may look like a number; the field has the type
                is_list = value.startswith("[")
                OmegaConf.update(config, key, yaml.load(value, yaml.BaseLoader) if is_list else _text(value))
        settings: Any = OmegaConf.to_object(config)
    except yaml.YAMLError as error:
        raise ExperimentError(f"a list cannot be read ({' '.join(str(error).split())}); write it as [a,b]") from None
    except Exception as error:
        if not is_of_hydra(error):
            raise
        raise ExperimentError(sentence(error)) from error
    settings.tracking = bind(settings.tracking, Tracking, "tracking")
    problems = settings.problems()
    if problems:
        raise ExperimentError(problems)
    return settings


def _text(value: str) -> str | None:
    return None if value == "null" else value
