"""Rows of text between a file and a `datasets.Dataset`, each with its place in the file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import datasets
import pyarrow as pa

from attnlab.data.corpus import FAULT, PLACE
from attnlab.errors import show

ROWS_OF_A_BATCH = 10_000


class NotText(str):
    """The description of a value that should be text but is not: `a list: ["Tom"]`."""

    __slots__ = ()


Cell = str | None
"""A text, None for null or nothing, or `NotText`."""

Row = tuple[str, Sequence[Cell]]
"""The place of a row, and its wanted cells."""


@dataclass(frozen=True)
class Format:
    """What a file does not say of itself.

    columns: the names of a table's columns; None takes its first line for them.
    separator: of a table's fields; None is a comma in csv and a tab in tsv.
    encoding: of text; None is UTF-8.
    field: the key of a JSON document that holds the rows; None where the document is the rows.
    replaces_header: whether `columns` stand in the place of a table's first line.
    """

    columns: Sequence[str] | None = None
    separator: str | None = None
    encoding: str | None = None
    field: str | None = None
    replaces_header: bool = False


@dataclass(frozen=True)
class Wanted:
    """The columns to read.

    required: each file must have them.
    optional: a file may lack them; its cells are then None.
    """

    required: Sequence[str]
    optional: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """All of them, in the order of a row's cells."""
        return [*self.required, *self.optional]


def as_cell(value: object) -> Cell:
    """A value of a JSON document or of a typed column as a cell; its numbers are text already."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return NotText(f"binary data: {show(repr(value), 60)}")
    kind = "an object" if isinstance(value, dict) else "a list"
    return NotText(f"{kind}: {show(value, 60)}")


def same_name(column: str, names: Iterable[str]) -> str | None:
    """The name that is the same as `column`, or None.

    Hangul and accents may be written in the other Unicode form.
    """
    wanted = unicodedata.normalize("NFC", column)
    return next((name for name in names if unicodedata.normalize("NFC", name) == wanted), None)


def shown_names(names: Sequence[str], most: int = 12) -> str:
    """The first few names, for a message."""
    if not names:
        return "none"
    shown = ", ".join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown} and {len(names) - most} more"


class MissingColumnError(Exception):
    """A file lacks a wanted column.

    name: of the file, within its folder.
    columns: those that it has.
    hint: what to do about it, to stand behind them.
    """

    def __init__(self, name: str, column: str, columns: Sequence[str], hint: str = "") -> None:
        super().__init__(name, column)
        self.name = name
        self.column = column
        self.columns = columns
        self.hint = hint


def write_rows(rows: Iterator[Row], columns: Mapping[str, str], path: Path) -> datasets.Dataset:
    """Write rows to an Arrow file batch by batch, and open it.

    The rows are memory-mapped, so they survive the removal of the file.

    columns: {name in the dataset: name in the file} of the cells. PLACE and FAULT follow them.
    """
    schema = pa.schema(dict.fromkeys((*columns, PLACE, FAULT), pa.string()))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        while batch := list(islice(rows, ROWS_OF_A_BATCH)):
            stream.write_batch(_as_arrow(batch, list(columns.values()), schema))
    return datasets.Dataset.from_file(str(path))


def _as_arrow(batch: list[Row], columns: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """The cells of these rows by column, then their places, then what is wrong with some."""
    faults: list[str | None] = [None] * len(batch)
    arrays = []
    for i, column in enumerate(columns):
        texts = [cells[i] for _, cells in batch]
        for row, cell in enumerate(texts):
            if type(cell) is NotText:
                faults[row] = f"{column!r} is {cell}"
                texts[row] = None
        arrays.append(pa.array(texts, pa.string()))
    places = [place for place, _ in batch]
    arrays += [pa.array(places, pa.string()), pa.array(faults, pa.string())]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
