"""What a command shows: mistakes as sentences, lines and progress bars."""

from __future__ import annotations

import errno
import logging
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from attnlab.errors import ExperimentError, JobFailedError, masked
from attnlab.experiment.rewording import is_of_hydra, sentence

log = logging.getLogger("attnlab")

ENVIRONMENT = {
    # Dependencies that would call home, or warn about how they were started.
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
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
