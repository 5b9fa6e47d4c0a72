"""Texts in and answers out: lines of stdin and of files, lines of stdout, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from attnlab.errors import ExperimentError

Item = TypeVar("Item")


def given_texts(texts: Sequence[str]) -> Iterator[str]:
    """The texts, or the lines of stdin where there are none; raises ExperimentError for a line that is not UTF-8."""
    yield from texts or lines_of(sys.stdin.buffer, "stdin")


def lines_of(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a file, without what ends them; raises ExperimentError for one that is not UTF-8."""
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            raise ExperimentError(f"line {number} of {name} is not UTF-8") from None
        yield text.removesuffix("\n").removesuffix("\r")


def given_pairs(texts: Sequence[str], source: Path | None, target: Path | None) -> Iterator[tuple[str, str]]:
    """A source and a target; or those of two files, line by line; or those on the lines of stdin, with a tab between.

    Raises ExperimentError for other arguments, a line that is no pair, and files of different lengths.
    """
    if len(texts) not in (0, 2) or (source is None) != (target is None) or (texts and source is not None):
        raise ExperimentError("give SOURCE and TARGET, or --source and --target, or neither and pairs on stdin")
    if source is not None and target is not None:
        with source.open("rb") as sources, target.open("rb") as targets:
            pairs = zip_longest(lines_of(sources, str(source)), lines_of(targets, str(target)))
            for number, (one, other) in enumerate(pairs):
                if one is None or other is None:
                    short, long = (source, target) if one is None else (target, source)
                    raise ExperimentError(
                        f"{short} has {number} lines, and {long} has more; line by line they are pairs"
                    )
                yield one, other
    elif texts:
        one, other = given_texts(texts)
        yield one, other
    else:
        for number, line in enumerate(given_texts([]), 1):
            if line.count("\t") != 1:
                raise ExperimentError(f"line {number} of stdin must be a source, a tab and a target, got {line!r}")
            one, _, other = line.partition("\t")
            yield one, other


def with_progress(answers: Iterable[Item], of_a_file: bool) -> Iterator[Item]:
    """The answers; of a file, with a bar on stderr where that is a terminal and stdout is not."""
    if not of_a_file or not sys.stderr.isatty() or sys.stdout.isatty():
        yield from answers
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), "lines", MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as progress:
        yield from progress.track(answers)


def print_fields(*fields: str) -> None:
    """One line, with tabs between the fields, written at once; line breaks within a field become spaces."""
    print("\t".join(" ".join(field.splitlines()) for field in fields), flush=True)


def print_json(answer: Any, **more: Any) -> None:
    """The fields of an answer and some more, as one line."""
    print(json.dumps({**vars(answer), **more}, ensure_ascii=False, default=_plain), flush=True)


def _plain(value: Any) -> Any:
    """An array in six decimals, or an answer within an answer."""
    return value.astype(float).round(6).tolist() if hasattr(value, "tolist") else vars(value)
