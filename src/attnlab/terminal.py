"""What a command prints: lines that also reach its log file, and errors as sentences."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from attnlab.errors import masked

log = logging.getLogger("attnlab")


def echo(text: str) -> None:
    """Print a line, and write it to the log file in the folder of the run."""
    print(text)
    log.info(text)


def show_problems(problems: Iterable[str], place: str = "", stream: TextIO | None = None) -> None:
    """Print each problem as a sentence, without passwords.

    place: stands before each of them.
    stream: the standard error stream by default.
    """
    for problem in problems:
        print(f"error: {place}{masked(problem)}", file=stream or sys.stderr)


def print_any_character() -> None:
    """Have stdout and stderr show a character that their encoding lacks as `\\ud55c`.

    Without this, printing it would raise an error.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
            with suppress(OSError):  # of a stream whose descriptor was redirected since
                stream.reconfigure(errors="backslashreplace")
