"""Texts in and answers out: lines of stdin, lines of stdout, JSON."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from attnlab.errors import ExperimentError, show

Item = TypeVar("Item")


def given_texts(texts: Sequence[str]) -> Iterator[str]:
    """The texts, or the lines of stdin where there are none; raises ExperimentError for one that is
    not UTF-8.
    """
    for number, text in enumerate(texts, 1):
        check_argument(number, text)
        yield text
    if not texts:
        yield from lines_of(sys.stdin.buffer)


def lines_of(stdin: Iterable[bytes]) -> Iterator[str]:
    """The lines of a file, which end in LF or CR LF, without these and without a byte order mark at
    the start.

    Nothing else ends a line, so that line n of the answers belongs to line n of the file for every
    other program.

    Raises ExperimentError for a line that is not UTF-8.
    """
    for number, line in enumerate(stdin, 1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ExperimentError(
                f"line {number} of stdin is not UTF-8{other_encoding(number, line)}: byte "
                f"{error.start + 1} is 0x{line[error.start]:02x}; convert the text first, as with "
                "`iconv -f <its encoding> -t UTF-8`"
            ) from None
        if text.endswith("\n"):
            text = text.removesuffix("\n").removesuffix("\r")
        yield text


def other_encoding(number: int, line: bytes) -> str:
    """What a file says that it is, where the mark at its start does."""
    is_utf16 = number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return " but UTF-16" if is_utf16 else ""


def check_argument(number: int, text: str) -> None:
    """Raise ExperimentError for an argument whose bytes are not UTF-8; Python makes lone surrogates
    of them.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ExperimentError(
            f"text {number} of the command line is not UTF-8, got {show(text)}"
        ) from None


def given_pairs(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A source and a target, or those on the lines of stdin, with a tab between.

    Raises ExperimentError for other arguments, and for a line that is no pair.
    """
    if len(texts) not in (0, 2):
        raise ExperimentError("give SOURCE and TARGET, or neither and pairs on stdin")
    if texts:
        source, target = given_texts(texts)
        yield source, target
        return
    for number, line in enumerate(given_texts([]), 1):
        if line.count("\t") != 1:
            raise ExperimentError(
                f"line {number} of stdin must be a source, a tab and a target, got {line!r}"
            )
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
    """One line, with tabs between the fields, written at once; line breaks within a field become
    spaces.
    """
    print("\t".join(" ".join(field.splitlines()) for field in fields), flush=True)


def print_json(answer: Any, **more: Any) -> None:
    """The fields of an answer and some more, as one line."""
    print(json.dumps({**vars(answer), **more}, ensure_ascii=False, default=_plain), flush=True)


def _plain(value: Any) -> Any:
    """An array in six decimals, or an answer within an answer."""
    return value.astype(float).round(6).tolist() if hasattr(value, "tolist") else vars(value)
