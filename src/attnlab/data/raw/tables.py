"""Rows of csv and tsv: every field as the text that stands there.

csv quotes fields with `"`, as RFC 4180 says; in tsv a quotation mark is a character like others.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attnlab.data.raw.lines import read_lines, without_end
from attnlab.data.raw.rows import Format, MissingColumnError, Row
from attnlab.errors import ExperimentError, show

SEPARATORS = {"csv": ",", "tsv": "\t", "txt": "\t"}
"""Suffix -> what separates fields."""

_CARRIAGE_RETURN = "\udc0d"  # stands for one in a line: `csv` would end the row there; decoded text never has it

Numbered = Iterator[tuple[int, list[str]]]
"""(number of a row's first line, its fields)."""


def read_table(
    path: Path, name: str, kind: str, wanted: Sequence[str], form: Format, place: str, note: Callable[[str], None]
) -> Iterator[Row]:
    """The wanted cells of each row.

    Args:
        name: how the rows' places call the file.
        kind: csv, tsv or txt.
        wanted: columns; of those behind the first two, a table may lack some.
        place: the file, as an error names it.
        note: takes a sentence about what was ignored.

    Raises ExperimentError where a column is missing, or a row has another number of fields than the header.
    """
    separator = form.separator or SEPARATORS[kind]
    lines = read_lines(path, place, form.encoding)
    rows = _quoted(lines, separator, place) if kind == "csv" else _unquoted(lines, separator)

    header = None if form.columns is not None else next(rows, None)
    if form.columns is None and header is None:
        return
    names = list(form.columns or ()) if header is None else [field.strip() for field in header[1]]
    width_of_header = len(names)
    while header is not None and names and not names[-1]:  # separators at the end of the header
        names.pop()
    places = _positions(names, wanted, separator, name, place, given=header is None)

    width: int | None = None
    for number, fields in rows:
        if number == 1 and fields == names:
            raise ExperimentError(f"{place}: line 1 names the columns, as data.columns does; leave data.columns out")
        if width is None:
            width = _width_of_rows(fields, len(names), width_of_header)
            if width > width_of_header:
                note(f"{name}: its rows end in {width - len(names)} empty field(s) behind the last column, ignored")
        is_ignored_end = len(names) < len(fields) and not "".join(fields[len(names) :]).strip()
        if len(fields) != width or (width > width_of_header and not is_ignored_end):
            raise ExperimentError(_wrong_width(place, number, fields, width_of_header, given=header is None))
        yield f"{name}, line {number}", [None if i is None else fields[i] for i in places]


def _width_of_rows(first: list[str], names: int, width_of_header: int) -> int:
    """How many fields each row must have, by the first one: empty ones may follow the last column in every row."""
    has_empty_end = len(first) > names and not "".join(first[names:]).strip()
    is_without_the_headers_end = len(first) == names
    return len(first) if has_empty_end or is_without_the_headers_end else width_of_header


def _quoted(lines: Iterator[str], separator: str, place: str) -> Numbered:
    """Rows of csv; blank lines between them are skipped."""
    csv.field_size_limit(sys.maxsize)  # rows with too long texts are dropped later, and counted
    reader = csv.reader(map(_hide_carriage_returns, lines), delimiter=separator, strict=True)
    last_line = 0
    try:
        for fields in reader:
            if fields:
                yield last_line + 1, [field.replace(_CARRIAGE_RETURN, "\r") for field in fields]
            last_line = reader.line_num
    except csv.Error as error:
        raise ExperimentError(
            f"{place}, line {last_line + 1}: its quotation marks do not pair ({error}); write a field with a quotation "
            'mark in it as "say ""hello"" twice", or give the file as tsv, where quotation marks are characters'
        ) from error


def _hide_carriage_returns(line: str) -> str:
    if "\r" not in line:
        return line
    end = "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""
    return line[: len(line) - len(end)].replace("\r", _CARRIAGE_RETURN) + end


def _unquoted(lines: Iterator[str], separator: str) -> Numbered:
    """Rows of tsv; blank lines between them are skipped."""
    for number, line in enumerate(lines, start=1):
        if text := without_end(line):
            yield number, text.split(separator)


def _positions(
    names: list[str], wanted: Sequence[str], separator: str, name: str, place: str, given: bool
) -> list[int | None]:
    """The position of each wanted column; None for a missing one that may be missing."""
    positions: list[int | None] = []
    for i, column in enumerate(wanted):
        if names.count(column) > 1:
            raise ExperimentError(f"{place}: {names.count(column)} columns are called {column!r}; rename one of them")
        if column in names:
            positions.append(names.index(column))
        elif i < 2:
            raise MissingColumnError(name, column, names, _hint(names, wanted, separator, given))
        else:
            positions.append(None)
    return positions


def _hint(names: list[str], wanted: Sequence[str], separator: str, given: bool) -> str:
    """What to do about a missing column."""
    if given:
        return ", as data.columns says"
    line = separator.join(names)
    for other in (",", ";", "\t", "|"):
        if other != separator and {*wanted[:2]} <= {name.strip(" \"'") for name in line.split(other)}:
            written = "tab" if other == "\t" else f"'{other}'"
            return f"; its fields seem to be separated otherwise, try data.separator={written}"
    example = f"data.columns=[{','.join([*wanted[:2], *(['...'] if len(names) > 2 else [])])}]"
    return f"; where the first line is a row already, name the file's {len(names)} columns in their order, {example}"


def _wrong_width(place: str, number: int, fields: list[str], expected: int, given: bool) -> str:
    of_header = f"data.columns has {expected}" if given else f"the header has {expected}"
    found = f"{len(fields)} field" if len(fields) == 1 else f"{len(fields)} fields"
    return f"{place}, line {number}: {found}, {of_header}; the line begins {show(' | '.join(fields), 80)}"
