"""Input and output of the subcommands: lines of stdin, lines of stdout, JSON."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from attnlab.data.raw.lines import check_is_not_utf_16
from attnlab.errors import ExperimentError, show

Item = TypeVar("Item")


def given_texts(texts: Sequence[str]) -> Iterator[str]:
    """The texts, or the lines of stdin where there are none.

    Raises ExperimentError for one that is not UTF-8.
    """
    for number, text in enumerate(texts, start=1):
        check_argument(number, text)
        yield text
    if not texts:
        yield from lines_of(sys.stdin.buffer)


def lines_of(stdin: Iterable[bytes]) -> Iterator[str]:
    """The lines of a file, without their ends and without a byte order mark at the start.

    A line ends in LF or CR LF. Nothing else ends one, so that line n of the answers belongs to line
    n of the file for every other program.

    Raises ExperimentError for a line that is not UTF-8.
    """
    for number, line in enumerate(stdin, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ExperimentError(
                f"line {number} of stdin is not UTF-8{_other_encoding(number, line)}: "
                f"byte {error.start + 1} is 0x{line[error.start]:02x}; "
                "convert the text first, as with `iconv -f <its encoding> -t UTF-8`"
            ) from None
        if number == 1:
            check_is_not_utf_16(text, "stdin", "convert the text first, from ")
        if text.endswith("\n"):
            text = text.removesuffix("\n").removesuffix("\r")
        yield text


def _other_encoding(number: int, line: bytes) -> str:
    """The encoding that a byte order mark at the start of the file names, or nothing."""
    is_utf16 = number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return " but UTF-16" if is_utf16 else ""


def check_argument(number: int, text: str) -> None:
    """Raise ExperimentError for an argument whose bytes are not UTF-8."""
    try:
        text.encode("utf-8")  # Python makes lone surrogates of such bytes
    except UnicodeEncodeError:
        raise ExperimentError(
            f"text {number} of the command line is not UTF-8, got {show(text)}"
        ) from None


def given_pairs(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A source and a target, or those on the lines of stdin, with a tab between.

    Raises ExperimentError for another number of arguments, and for a line that is not a pair.
    """
    if len(texts) not in (0, 2):
        raise ExperimentError("give SOURCE and TARGET, or neither and pairs on stdin")
    if texts:
        source, target = given_texts(texts)
        yield source, target
        return
    for number, line in enumerate(given_texts([]), start=1):
        if line.count("\t") != 1:
            raise ExperimentError(
                f"line {number} of stdin must be a source, a tab and a target, got {line!r}"
            )
        source, _, target = line.partition("\t")
        yield source, target


def with_progress(answers: Iterable[Item], reads_file: bool) -> Iterator[Item]:
    """The answers, with a bar on stderr where a file is read.

    There is no bar where stderr is not a terminal, or where the answers appear on one.
    """
    if not reads_file or not sys.stderr.isatty() or sys.stdout.isatty():
        yield from answers
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), "lines", MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as progress:
        yield from progress.track(answers)


def print_fields(*fields: str) -> None:
    """Print one line, with tabs between the fields, at once.

    Line breaks within a field become spaces.
    """
    on_one_line = [" ".join(field.splitlines()) for field in fields]
    print("\t".join(on_one_line), flush=True)


def print_json(answer: Any, **more: Any) -> None:
    """Print the fields of an answer and some more, as one line."""
    fields = {**vars(answer), **more}
    print(json.dumps(fields, ensure_ascii=False, default=_plain), flush=True)


def _plain(value: Any) -> Any:
    """An array in six decimals, or an answer within an answer."""
    if hasattr(value, "tolist"):
        return value.astype(float).round(6).tolist()
    return vars(value)
