"""Rows of csv and tsv: every field as the text that stands there.

csv quotes fields with `"`, as RFC 4180 says; in tsv a quotation mark is a character like others.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.data.raw import SEPARATOR_NAMES
from attnlab.data.raw.lines import BYTE_ORDER_MARK, read_lines, without_end
from attnlab.data.raw.rows import Format, MissingColumnError, Row, Wanted, same_name
from attnlab.errors import ExperimentError, show

SEPARATORS = {"csv": ",", "tsv": "\t", "txt": "\t"}
"""Suffix -> what separates fields."""

# Stands for one in a line: `csv` would end the row there; decoded text never has it
_CARRIAGE_RETURN = "\udc0d"

Numbered = Iterator[tuple[int, int, list[str]]]
"""(number of a row's first line, number of its last line, its fields)."""


def read_table(
    path: Path,
    name: str,
    kind: str,
    wanted: Wanted,
    form: Format,
    place: str,
    note: Callable[[str], None],
) -> Iterator[Row]:
    """The wanted cells of each row.

    Args:
        name: how the rows' places call the file.
        kind: csv, tsv or txt.
        place: the file, as an error names it.
        note: takes a sentence about what was ignored.

    Raises ExperimentError where a column is missing, or a row has another number of fields than the
    header.
    """
    separator = form.separator or SEPARATORS[kind]
    lines = read_lines(path, place, form.encoding)
    rows = _quoted(lines, separator, place) if kind == "csv" else _unquoted(lines, separator)
    if form.replaces_header:
        next(rows, None)

    header = _header(rows, form.columns)
    if header is None:
        return
    places = [header.position(column, place) for column in wanted.columns]
    for column in wanted.required:
        if header.position(column, place) is None:
            hint = _hint(header, wanted.required, separator)
            raise MissingColumnError(name, column, header.names, hint)

    seen = _Remarkable(name, quoted=kind == "csv")
    named = len(header.names)
    width: int | None = None  # of every row, as of the first
    for number, end, fields in rows:
        # Concatenated files repeat the header; a file may also have the one that the config gives.
        if header.is_repeated_by(fields, is_first=number == 1):
            seen.header_again(number, is_first=number == 1)
            continue
        if width is None:
            _check_is_no_other_header(fields, header, place)
            width = header.width_of_rows(fields)
            if width > header.width:
                seen.empty_end = width - named
        # Whatever stands behind the columns that the header names must be nothing.
        is_text_behind = width > header.width and bool("".join(fields[named:]).strip())
        if len(fields) != width or is_text_behind:
            raise ExperimentError(_wrong_width(place, number, fields, header))
        cells = [None if i is None else fields[i] for i in places]
        nameless = [fields[i] for i in header.nameless if i < len(fields)]
        seen.row(number, end, cells, nameless)
        yield f"{name}, line {number}", cells
    for sentence in seen.sentences():
        note(sentence)


class _Remarkable:
    """What is odd about a table that can be read, and that its user may not mean."""

    def __init__(self, name: str, quoted: bool) -> None:
        self._name = name
        self._quoted = quoted
        self.empty_end = 0  # empty fields behind the last column of every row
        self._rows = 0
        self._in_quotes = 0  # rows all cells of which stand in quotation marks that are characters
        # Cells in quotation marks, and others, by whether they have a comma
        self._of_excel: Counter[tuple[bool, bool]] = Counter()
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def _add(self, what: str, where: str) -> None:
        """Count a row of which something can be said, and note where the first one stands."""
        self._counts[what] += 1
        self._first.setdefault(what, where)

    def header_again(self, number: int, is_first: bool) -> None:
        if not is_first:
            self._add("repeat the header, and are left out", f"line {number}")

    def row(
        self, number: int, end: int, cells: Sequence[str | None], nameless: Sequence[str]
    ) -> None:
        """Check a row for what is ignored or may be a mistake.

        number, end: the first and the last line of the row.
        nameless: its fields in columns without a name.
        """
        self._rows += 1
        if end > number:
            self._add("span several lines within quotation marks", f"lines {number} to {end}")
        if "".join(nameless).strip():
            self._add("have text in a column without a name, which is not read", f"line {number}")
        texts = [cell for cell in cells if cell is not None]
        if self._quoted:
            spaced = [text for text in texts if text.startswith(" ")]
            if any(_is_in_quotes(text.strip()) for text in spaced):
                self._add(
                    "have a space before a quotation mark, which is then a character like others",
                    f"line {number}",
                )
        else:
            if any(map(_has_doubled_quotes, texts)):
                self._add(
                    "have a cell in quotation marks with doubled ones in it, as pandas and Excel "
                    "write them, which are characters in tsv; to have them read as quotes, call "
                    "the file csv and choose data.separator=tab:",
                    f"line {number}",
                )
            if all(map(_is_in_quotes, texts)):
                self._in_quotes += 1
            self._of_excel.update((_is_in_quotes(text), "," in text) for text in texts)

    def sentences(self) -> Iterator[str]:
        """A sentence for each thing that was found, once all rows are read."""
        if self.empty_end:
            yield (
                f"{self._name}: its rows end in {self.empty_end} empty field(s) behind the last "
                "column, ignored"
            )
        for what, count in self._counts.items():
            yield f"{self._name}: {count} row(s) {what}, the first {self._first[what]}"
        if self._rows and self._in_quotes == self._rows:
            yield (
                f"{self._name}: every cell stands in quotation marks, which are characters in tsv; "
                "to have them read as quotes, call the file csv and choose data.separator=tab"
            )
        elif self._is_quoted_as_by_excel():
            yield (
                f"{self._name}: all {self._of_excel[True, True]} cell(s) with a comma, and no "
                "others, stand in quotation marks, as Excel writes text delimited by tabs; they "
                "are characters in tsv; to have them read as quotes, call the file csv and choose "
                "data.separator=tab"
            )

    def _is_quoted_as_by_excel(self) -> bool:
        """Whether the cells with a comma, and these alone, stand in quotation marks."""
        quoted_without, bare_with = self._of_excel[True, False], self._of_excel[False, True]
        return self._of_excel[True, True] > 0 and not quoted_without and not bare_with


def _is_in_quotes(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _has_doubled_quotes(text: str) -> bool:
    """Whether a cell is quoted as csv has it: `"say ""hello"" twice"`."""
    inside = text[1:-1]
    return _is_in_quotes(text) and '""' in inside and '"' not in inside.replace('""', "")


@dataclass(frozen=True)
class _Header:
    """The columns of a table.

    names: without nameless ones at the end, which come from separators behind the last name.
    nameless: the positions of the columns without a name.
    width: the number of fields in the line that names them, the nameless ones too.
    is_of_config: whether data.columns gives the names.
    """

    names: list[str]
    nameless: list[int]
    width: int
    is_of_config: bool

    def is_repeated_by(self, fields: Sequence[str], is_first: bool) -> bool:
        """Whether a row has the names of the columns; a first one may have them in any case."""
        written = [field.removeprefix(BYTE_ORDER_MARK) for field in fields]
        if is_first:
            return _folded(written) == _folded(self.names)
        return written == self.names

    def position(self, column: str, place: str) -> int | None:
        """The position of a column; None where there is none."""
        name = same_name(column, self.names)
        if name is None:
            return None
        if self.names.count(name) > 1:
            count = self.names.count(name)
            raise ExperimentError(
                f"{place}: {count} columns are called {column!r}; rename one of them"
            )
        return self.names.index(name)

    def width_of_rows(self, first: list[str]) -> int:
        """The number of fields that each row must have, given the first row.

        Empty fields may follow the last column in every row.
        """
        named = len(self.names)
        has_empty_end = len(first) > named and not "".join(first[named:]).strip()
        if has_empty_end or len(first) == named:
            return len(first)
        return self.width


def _header(rows: Numbered, columns: Sequence[str] | None) -> _Header | None:
    """The columns that the config or the first row names; None for an empty file."""
    if columns is not None:
        return _Header(list(columns), [], len(columns), is_of_config=True)
    first = next(rows, None)
    if first is None:
        return None
    _, _, fields = first
    names = [field.strip() for field in fields]
    nameless = [i for i, name in enumerate(names) if not name]
    width = len(names)
    while names and not names[-1]:
        names.pop()
    return _Header(names, nameless, width, is_of_config=False)


def _check_is_no_other_header(first: Sequence[str], header: _Header, place: str) -> None:
    """Raise ExperimentError where the first row names the columns in another order."""
    if not header.is_of_config or len(first) < 2:
        return
    named = _folded(first)
    wanted = _folded(header.names)
    if named != wanted and sorted(named) == sorted(wanted):
        raise ExperimentError(
            f"{place}, line 1: the header has {', '.join(first)}, but data.columns says "
            f"{', '.join(header.names)}; leave data.columns out, or give the order of the header"
        )


def _folded(names: Sequence[str]) -> list[str]:
    """The names without their case and the white space around them."""
    return [name.strip().casefold() for name in names]


def _quoted(lines: Iterator[str], separator: str, place: str) -> Numbered:
    """Rows of csv; blank lines between them are skipped."""
    csv.field_size_limit(sys.maxsize)  # rows with too long texts are dropped later, and counted
    whole = map(_without_mark, lines)
    reader = csv.reader(map(_hide_carriage_returns, whole), delimiter=separator, strict=True)
    last_line = 0
    try:
        for fields in reader:
            is_blank = len(fields) < 2 and not "".join(fields).strip(" ")
            if not is_blank:
                as_written = [field.replace(_CARRIAGE_RETURN, "\r") for field in fields]
                yield last_line + 1, reader.line_num, as_written
            last_line = reader.line_num
    except csv.Error as error:
        raise ExperimentError(
            f"{place}, line {last_line + 1}: its quotation marks do not pair ({error}); write a "
            "field with a quotation "
            'mark in it as "say ""hello"" twice", or give the file as tsv, where quotation marks '
            "are characters"
        ) from error


def _without_mark(line: str) -> str:
    """The line without a byte order mark before a quotation mark, as in concatenated files."""
    return line.removeprefix(BYTE_ORDER_MARK) if line[1:2] == '"' else line


def _hide_carriage_returns(line: str) -> str:
    """The line with _CARRIAGE_RETURN for each carriage return but that of its end."""
    if "\r" not in line:
        return line
    text = without_end(line)
    end = line[len(text) :]
    return text.replace("\r", _CARRIAGE_RETURN) + end


def _unquoted(lines: Iterator[str], separator: str) -> Numbered:
    """Rows of tsv; blank lines between them are skipped."""
    for number, line in enumerate(lines, start=1):
        text = without_end(line)
        if text.strip(" "):
            yield number, number, text.split(separator)


def _hint(header: _Header, required: Sequence[str], separator: str) -> str:
    """What to do about a missing column."""
    if header.is_of_config:
        return ", as data.columns says"
    line = separator.join(header.names)
    for word in ("comma", "semicolon", "tab", "pipe"):
        other = SEPARATOR_NAMES[word]
        split_otherwise = {name.strip(" \"'") for name in line.split(other)}
        if other != separator and split_otherwise >= set(required):
            return f"; its fields seem to be separated otherwise, try data.separator={word}"
    if line.startswith("sep="):
        return (
            "; its first line is for Excel alone: remove it, and choose data.separator by what it "
            "says"
        )
    return (
        "; choose one of them, or name all columns by data.columns where the first line is a row "
        "already"
    )


def _wrong_width(place: str, number: int, fields: list[str], header: _Header) -> str:
    """The sentence for a row that has another number of fields than the header."""
    found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
    where_named = "data.columns" if header.is_of_config else "the header"
    start = show(" | ".join(fields), 80)
    return (
        f"{place}, line {number}: {found}, {where_named} has {header.width}; mend or delete the "
        f"line, which begins {start}"
    )
