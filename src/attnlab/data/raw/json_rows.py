"""Rows of JSON: an object per line, a list of objects, or one object of lists.

Numbers keep their spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from attnlab.data.raw.lines import read_lines, unpacked_name
from attnlab.data.raw.rows import (
    Cell,
    Format,
    MissingColumnError,
    NotText,
    Row,
    Wanted,
    as_cell,
    same_name,
    shown_names,
)
from attnlab.errors import ExperimentError, show

# Not strict: a tab or another control character within a text is taken as it stands.
# `NaN` is what pandas and Python write for a missing value.
_DECODER = json.JSONDecoder(
    parse_int=str,
    parse_float=str,
    parse_constant=lambda name: None if name == "NaN" else name,
    strict=False,
)
_BLANK = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MISSING = object()
_TOO_DEEP = "lists and objects lie too deep in each other to be read; leave them out of the file"

Placed = Iterator[tuple[str, Any]]
"""(place of a value within the file, the value)."""


def read_json(path: Path, name: str, wanted: Wanted, form: Format, place: str) -> Iterator[Row]:
    """The wanted cells of each row, in the form that `read_table` yields.

    A dot in a column reaches into a nested object. In jsonl and ndjson each line is a row; json may
    also be one document.
    """
    has_rows = False
    seen: set[str] = set()  # the wanted columns that a row has had
    keys: dict[str, None] = {}  # all columns, in the order of reading, for an error
    is_lines = not unpacked_name(path.name).lower().endswith(".json")
    lines = read_lines(path, place, form.encoding)
    columns = wanted.columns
    for inside, value in _rows(lines, wanted, form.field, place, is_lines):
        if not isinstance(value, dict):
            raise ExperimentError(
                f"{place}, {inside}: a row must be an object with the columns as its keys, got "
                f"{show(value, 80)}"
            )
        has_rows = True
        cells: list[Cell] = []
        for column in columns:
            found = _cell(value, column)
            if found is _MISSING:
                cells.append(None)
            else:
                seen.add(column)
                cells.append(_checked(found))
        if len(seen) < len(columns):
            keys.update(dict.fromkeys(_dotted(value)))
        yield f"{name}, {inside}", cells
    for column in wanted.required:
        if has_rows and column not in seen:
            raise MissingColumnError(name, column, list(keys))


def _rows(
    lines: Iterator[str], wanted: Wanted, field: str | None, place: str, is_lines: bool
) -> Placed:
    numbered = enumerate(lines, start=1)
    first = _next_with_text(numbered)
    if first is None:
        return
    number, line = first

    # If the first line is an object by itself, each line is a row; else the file is one document.
    row = _whole(line) if field is None else None
    if row is None:
        text = line + "".join(each for _, each in numbered)
        values = list(_values(text, number - 1, place))
        if field is not None:
            values = _of_field(values, field, place)
        yield from _document(values, wanted, place)
        return

    second = _next_with_text(numbered)
    # The only object of the file may hold each column as a list
    if second is None and not is_lines:
        yield from _document([(f"line {number}", row)], wanted, place)
        return
    yield f"line {number}", row
    if second is not None:
        yield from _line_by_line(chain([second], numbered), place)


def _next_with_text(numbered: Iterator[tuple[int, str]]) -> tuple[int, str] | None:
    """The next line that is not blank, with its number."""
    for number, line in numbered:
        if line.strip():
            return number, line
    return None


def _whole(line: str) -> dict[str, Any] | None:
    """The object that a line holds, if it holds exactly one."""
    try:
        value = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _line_by_line(numbered: Iterator[tuple[int, str]], place: str) -> Placed:
    """The value of each line that is not blank."""
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            yield f"line {number}", _DECODER.decode(line)
        except json.JSONDecodeError as error:
            raise ExperimentError(
                f"{place}, line {number}: this is no JSON ({error.msg}, column {error.colno}); it "
                f"reads {show(line.strip(), 80)}"
            ) from error
        except RecursionError:
            raise ExperimentError(f"{place}, line {number}: {_TOO_DEEP}") from None


def _values(text: str, lines_before: int, place: str) -> Placed:
    """All values of a text, in order, each with the line that it starts in."""
    position = _after_blanks(text, 0)
    line = lines_before + 1
    counted_up_to = 0
    while position < len(text):
        line += text.count("\n", counted_up_to, position)
        counted_up_to = position
        try:
            value, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            number = lines_before + error.lineno
            raise ExperimentError(
                f"{place}, line {number}: this is no JSON ({error.msg}, column {error.colno})"
            ) from error
        except RecursionError:
            raise ExperimentError(f"{place}, line {line}: {_TOO_DEEP}") from None
        yield f"line {line}", value
        position = _after_blanks(text, end)


def _after_blanks(text: str, position: int) -> int:
    """The position of the next character from here on that is no white space."""
    return _BLANK.match(text, position).end()  # type: ignore[union-attr]


def _of_field(values: list[tuple[str, Any]], field: str, place: str) -> list[tuple[str, Any]]:
    """The value under a key of the document; the file must be one object that has it."""
    if len(values) == 1:
        inside, document = values[0]
        if isinstance(document, dict) and field in document:
            return [(inside, document[field])]
    raise ExperimentError(
        f"{place}: it must be one object with the key {field!r}, which holds the rows"
    )


def _document(values: Sequence[tuple[str, Any]], wanted: Wanted, place: str) -> Placed:
    """The rows of a document.

    The rows of a list are its entries. Those of an object of lists are their first entries, their
    second entries, and so on.
    """
    if len(values) != 1:
        yield from values
        return
    inside, value = values[0]
    if isinstance(value, list):
        for number, row in enumerate(value, start=1):
            yield f"row {number}", row
        return
    columns = _columns_of_lists(value, wanted)
    if columns is not None:
        yield from _rows_of_columns(columns, place)
        return
    if rows_under := _keys_of_rows(value):
        raise ExperimentError(
            f"{place} is one object with the keys {shown_names(list(value))}; give the list of "
            f"rows under {rows_under[0]!r} by itself, or one row a line"
        )
    if isinstance(value, dict) and any(isinstance(each, dict) for each in value.values()):
        is_a_row = all(isinstance(_cell(value, column), str) for column in wanted.required)
        if not is_a_row:
            raise ExperimentError(
                f"{place} is one object with the keys {shown_names(list(value))}, which hold "
                "objects; give one row a line, as pandas writes with to_json(..., "
                "orient='records', lines=True)"
            )
    yield inside, value


def _columns_of_lists(value: Any, wanted: Wanted) -> dict[str, list[Any]] | None:
    """The wanted columns of an object with a list for each column; None for any other value."""
    if not isinstance(value, dict):
        return None
    found = {column: _cell(value, column) for column in wanted.columns}
    columns = {column: cells for column, cells in found.items() if isinstance(cells, list)}
    return columns if {*wanted.required} <= columns.keys() else None


def _rows_of_columns(columns: dict[str, list[Any]], place: str) -> Placed:
    """A row for each entry of the columns, which must all have as many."""
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) > 1:
        shown = ", ".join(f"{column!r} has {len(cells)}" for column, cells in columns.items())
        raise ExperimentError(f"{place}: its columns have different numbers of entries: {shown}")
    for number, cells in enumerate(zip(*columns.values(), strict=True), start=1):
        yield f"row {number}", dict(zip(columns, cells, strict=True))


def _keys_of_rows(value: Any) -> list[str]:
    """The keys of an object under which a list of rows stands."""
    if not isinstance(value, dict):
        return []
    found = []
    for key, entries in value.items():
        if isinstance(entries, list) and entries and isinstance(entries[0], dict):
            found.append(key)
    return found


def _cell(row: dict[str, Any], column: str) -> Any:
    """The value of a column; for `a.b` the value of `b` in the object `a`.

    `_MISSING` if there is none.
    """
    if column in row:
        return row[column]
    value: Any = row
    for key in [column] if same_name(column, row) else column.split("."):
        name = same_name(key, value) if isinstance(value, dict) else None
        if name is None:
            return _MISSING
        value = value[name]
    return value


def _checked(value: Any) -> Cell:
    """A value as a cell; `NotText` for text that cannot be written as UTF-8."""
    cell = as_cell(value)
    if cell is not None and not cell.isascii() and _SURROGATE.search(cell):
        escaped = cell.encode("ascii", "backslashreplace").decode()
        return NotText(f"text with a lone surrogate: {show(escaped, 60)}")
    return cell


def _dotted(row: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The names of a row's columns."""
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
