"""Rows of files with typed columns: parquet, and folders that `datasets` saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attnlab.data.raw.lines import faults_of
from attnlab.data.raw.rows import (
    ROWS_OF_A_BATCH,
    Cell,
    MissingColumnError,
    Row,
    Wanted,
    as_cell,
    same_name,
)
from attnlab.errors import ExperimentError


def read_parquet(path: Path, name: str, wanted: Wanted, place: str) -> Iterator[Row]:
    """The wanted cells of each row, in the form that `read_table` yields.

    A dot in a column reaches into a nested one.
    """
    with faults_of(place), pq.ParquetFile(path) as file:
        top = _top_levels(file.schema_arrow, wanted, place)
        batches = file.iter_batches(ROWS_OF_A_BATCH, columns=top) if top else ()
        yield from _rows(batches, file.schema_arrow, name, wanted)


def read_saved(rows: datasets.Dataset, name: str, wanted: Wanted) -> Iterator[Row]:
    """The same of a dataset that `save_to_disk` wrote, or that an earlier command downloaded."""
    schema = rows.features.arrow_schema
    top = _top_levels(schema, wanted, name)
    batches = rows.select_columns(top).with_format("arrow").iter(ROWS_OF_A_BATCH) if top else ()
    yield from _rows(batches, schema, name, wanted)


def _rows(
    batches: Iterable[pa.RecordBatch | pa.Table],
    schema: pa.Schema,
    name: str,
    wanted: Wanted,
) -> Iterator[Row]:
    for column in wanted.required:
        if _path_of(column, schema) is None:
            raise MissingColumnError(name, column, list(_dotted(schema)))
    paths = [_path_of(column, schema) for column in wanted.columns]

    number = 0
    for batch in batches:
        columns = [_cells(batch, path) for path in paths]
        for cells in zip(*columns, strict=True):
            number += 1
            yield f"{name}, row {number}", cells


def class_names(features: datasets.Features | None, column: str) -> list[str] | None:
    """The names that a dataset gives to the labels 0, 1, ... of a column."""
    feature: Any = features
    # A name with a dot may be that of a column, or lead into a nested one.
    is_whole_name = features is not None and same_name(column, features) is not None
    for key in [column] if is_whole_name else column.split("."):
        name = same_name(key, feature) if isinstance(feature, dict) else None
        feature = None if name is None else feature[name]
    return list(feature.names) if isinstance(feature, datasets.ClassLabel) else None


def parquet_features(path: Path) -> datasets.Features | None:
    """The features that `datasets` noted in a parquet file; None if it did not write the file."""
    with faults_of(str(path)):
        schema = pq.read_schema(path)
    if not schema.metadata or b"huggingface" not in schema.metadata:
        return None
    return datasets.Features.from_arrow_schema(schema)


def _cells(batch: pa.RecordBatch | pa.Table, path: Sequence[str] | None) -> list[Cell]:
    """The cells of a column, which `path` leads to; empty ones where there is no such column."""
    if path is None:
        return [None] * len(batch)
    top, *inner = path
    array = batch.column(top)
    if inner:
        array = pc.struct_field(array, inner)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return _as_text(array)


def _as_text(array: pa.Array) -> list[Cell]:
    """Each value as text; numbers and dates as Arrow writes them."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _as_text(array.dictionary_decode())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [as_cell(value) for value in array.to_pylist()]
    texts = array.cast(pa.string())
    if pa.types.is_floating(kind):  # NaN is what pandas writes for a missing value
        texts = pc.if_else(pc.is_nan(array), None, texts)
    return texts.to_pylist()


def _top_levels(schema: pa.Schema, wanted: Wanted, place: str) -> list[str]:
    """The columns to read for the wanted ones, some of which may lie in the same one.

    Raises ExperimentError where two columns have the name of one of them.
    """
    paths = [_path_of(column, schema) for column in wanted.columns]
    top = list(dict.fromkeys(path[0] for path in paths if path is not None))
    for name in top:
        count = schema.names.count(name)
        if count > 1:
            raise ExperimentError(
                f"{place}: {count} columns are called {name!r}; rename one of them"
            )
    return top


def _path_of(column: str, schema: pa.Schema) -> list[str] | None:
    """The names that lead to a column, or None if there is no such column.

    After the first name come those of nested fields.
    """
    name = same_name(column, schema.names)
    if name is not None:
        return [name]

    path = []
    fields: Iterable[pa.Field] = schema
    for key in column.split("."):
        found = {field.name: field.type for field in fields}
        name = same_name(key, found)
        if name is None:
            return None
        path.append(name)
        fields = found[name] if pa.types.is_struct(found[name]) else ()
    return path if not fields else None  # a struct is no text


def _dotted(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[str]:
    """The names of all columns, nested ones with the names that lead to them."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _dotted(field.type, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"
