"""Sources of a split's rows: a file, parallel text files, or rows with types of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import datasets

from attnlab.data.raw.json_rows import read_json
from attnlab.data.raw.lines import PACKED, unpacked_name
from attnlab.data.raw.parallel import read_parallel
from attnlab.data.raw.rows import Format, Row, Wanted
from attnlab.data.raw.tables import read_table
from attnlab.data.raw.typed_rows import class_names, parquet_features, read_parquet, read_saved
from attnlab.errors import ExperimentError

KINDS = {
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
}
"""Suffix -> how the file is read."""

KNOWN_KINDS = f"known kinds are: {', '.join(KINDS)}, each also with {' or '.join(PACKED)}"

Note = Callable[[str], None]
"""Takes a sentence about what was ignored or guessed."""


class Source(Protocol):
    """Rows of a split."""

    def rows(self, wanted: Wanted, note: Note) -> Iterator[Row]:
        """The wanted cells of each row; raises MissingColumnError for a required column."""

    def class_names(self, column: str) -> list[str] | None:
        """The names of the labels 0, 1, ..., where the source knows them."""

    @property
    def has_typed_columns(self) -> bool:
        """Whether a column of classes holds their numbers, and never their names."""


@dataclass(frozen=True)
class File:
    """A file of rows.

    name: what the places of its rows call it.
    place: what errors call it.
    kind: a value of KINDS, or txt.
    features: that the dataset's card gives.
    """

    path: Path
    name: str
    place: str
    kind: str
    form: Format
    features: datasets.Features | None = None

    def rows(self, wanted: Wanted, note: Note) -> Iterator[Row]:
        if self.kind == "parquet":
            return read_parquet(self.path, self.name, wanted, self.place)
        if self.kind == "json":
            return read_json(self.path, self.name, wanted, self.form, self.place)
        return read_table(self.path, self.name, self.kind, wanted, self.form, self.place, note)

    def class_names(self, column: str) -> list[str] | None:
        features = self.features
        if features is None and self.kind == "parquet":
            features = parquet_features(self.path)
        return class_names(features, column)

    @property
    def has_typed_columns(self) -> bool:
        return self.kind == "parquet"


@dataclass(frozen=True)
class ParallelFiles:
    """Parallel text files, one for each column.

    files: by column.
    """

    files: Mapping[str, Path]
    form: Format

    def rows(self, wanted: Wanted, note: Note) -> Iterator[Row]:
        return read_parallel(self.files, wanted, self.form)

    def class_names(self, column: str) -> list[str] | None:
        return None

    @property
    def has_typed_columns(self) -> bool:
        return False


@dataclass(frozen=True)
class Saved:
    """Rows that `datasets` wrote to disk."""

    content: datasets.Dataset
    name: str

    def rows(self, wanted: Wanted, note: Note) -> Iterator[Row]:
        return read_saved(self.content, self.name, wanted)

    def class_names(self, column: str) -> list[str] | None:
        return class_names(self.content.features, column)

    @property
    def has_typed_columns(self) -> bool:
        return True


def kind_of(name: str, form: Format) -> str | None:
    """How a file of this name is read; None for a file of no known kind.

    A `.txt` file is a table where `data.columns` or `data.separator` says so.
    """
    suffix = unpacked_name(name).rpartition(".")[2].lower()
    if suffix == "txt" and (form.columns is not None or form.separator is not None):
        return "txt"
    return KINDS.get(suffix)


def check_format(form: Format, kind: str, place: str) -> None:
    """Raise ExperimentError where a setting says something that this kind of file does not have.

    kind: of KINDS, or txt, `parallel text` or `datasets`.
    """
    is_table = kind in ("csv", "tsv", "txt")
    of_tables = {"columns": form.columns, "separator": form.separator}
    for name, value in of_tables.items():
        if value is not None and not is_table:
            raise ExperimentError(
                f"data.{name} is for tables (csv, tsv, txt), but {place} is {kind}; leave it out"
            )
    if form.encoding is not None and kind in ("parquet", "datasets"):
        raise ExperimentError(
            f"data.encoding is for text, but {place} is {kind}, whose text is always UTF-8; leave "
            "it out"
        )
