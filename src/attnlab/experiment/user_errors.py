"""Errors that a user can fix end a command with sentences and exit code 1."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from attnlab.errors import ExperimentError, JobFailedError
from attnlab.experiment.hydra_errors import hydra_error_sentence, is_of_hydra
from attnlab.terminal import print_any_character, show_problems

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
# A full disk, a folder that may not be written to, a mounted one that cannot be replaced: no fault
# of the program.
MACHINE_FAULTS = {
    errno.EACCES, errno.EBUSY, errno.EDQUOT, errno.EFBIG, errno.ENAMETOOLONG, errno.ENOSPC,
    errno.ENOTDIR, errno.EPERM, errno.EROFS, errno.EXDEV,
}  # fmt: skip


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
            problem = _problem_of(error)
            if problem is None:
                raise
            _fail([problem])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has gone away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def _problem_of(error: Exception) -> str | None:
    """A library's error as a sentence; None where it is no user's mistake."""
    of_hydra = is_of_hydra(error)
    # Hydra's error for a missing config is an OSError, too, but of no system call.
    if isinstance(error, OSError) and error.errno and (of_hydra or error.errno in MACHINE_FAULTS):
        return f"{error.filename or 'a file'} cannot be used: {error.strerror}"

    kind = type(error).__name__
    if kind == "MisconfigurationException":  # Lightning's, of what a config passes on to it
        return str(error)
    if kind == "FailedJobError":  # submitit's, of what sbatch says
        return f"launcher: Slurm does not take the jobs: {'; '.join(str(error).splitlines())}"
    return hydra_error_sentence(error, sys.argv[1:]) if of_hydra else None


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
