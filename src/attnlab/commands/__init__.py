"""The command `attnlab`: its subcommands, and their mistakes as sentences.

To add a subcommand, write a function that adds its parser and sets the default
`run="<module>.<function>"`, a module of this package, and name it in `SUBCOMMANDS`. The module is
imported when it runs, so that `--help` answers at once. The scripts of pipelines/ are subcommands,
too (see pipelines.py).
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

import attnlab
from attnlab.commands.arguments import (
    add_classify,
    add_explore,
    add_export,
    add_score,
    add_translate,
)
from attnlab.commands.course import add_check
from attnlab.commands.inspect_module import add_inspect
from attnlab.commands.lesson import add_lesson
from attnlab.commands.pipelines import SUMMARIES, add_pipelines, run_pipeline
from attnlab.commands.sweep import add_sweep
from attnlab.errors import ExperimentError, masked

SUBCOMMANDS = (
    add_pipelines,
    add_translate,
    add_classify,
    add_score,
    add_explore,
    add_export,
    add_sweep,
    add_lesson,
    add_check,
    add_inspect,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Returns the exit code: 1 for a mistake, and for output that nobody reads any more; 130 for
    Ctrl-C. Where the arguments are wrong, argparse exits with 2.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in SUMMARIES:
        run_pipeline(given[0], given[1:])
        return 0
    parsed = _parsed(given)
    code, problems = 1, []
    try:
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        if hasattr(parsed, "text"):
            parsed.text = [_as_utf8(text) for text in parsed.text]
        module, _, function = parsed.run.partition(".")
        getattr(importlib.import_module(f"attnlab.commands.{module}"), function)(parsed)
        return 0
    except ExperimentError as error:
        problems = error.problems
    except BrokenPipeError:  # the reader has seen enough, as `head` does
        pass
    except OSError as error:
        problems = [
            f"{error.filename or 'stdin or stdout'} cannot be used: {error.strerror or error}"
        ]
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        code = 130
    for problem in problems:
        print(f"error: {masked(problem)}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # Python would try again at its end, and complain
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _as_utf8(text: str) -> str:
    """An argument as UTF-8, as the lines of stdin are read, whatever the locale's encoding."""
    return os.fsencode(text).decode("utf-8", errors="surrogateescape")


def _parsed(arguments: list[str]) -> argparse.Namespace:
    top = argparse.ArgumentParser(
        "attnlab", description="Train models, compare them, and ask them.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"attnlab {attnlab.__version__}")
    parsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in SUBCOMMANDS:
        add(parsers)
    chosen = parsers.choices.get(arguments[0]) if arguments else None
    # `parse_args` takes a text that stands behind an option for an unknown argument.
    return chosen.parse_intermixed_args(arguments[1:]) if chosen else top.parse_args(arguments)
