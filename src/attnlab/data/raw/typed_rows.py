"""Rows of files that know the types of their columns: parquet, and folders that `datasets` saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attnlab.data.raw.lines import faults_of
from attnlab.data.raw.rows import ROWS_OF_A_BATCH, Cell, MissingColumnError, Row, as_cell


def read_parquet(path: Path, name: str, wanted: Sequence[str], place: str) -> Iterator[Row]:
    """The wanted cells of each row, as `read_table` gives them; a dot in a column goes into a nested one."""
    with faults_of(place), pq.ParquetFile(path) as file:
        top = _top_levels(file.schema_arrow, wanted)
        batches = file.iter_batches(ROWS_OF_A_BATCH, columns=top) if top else ()
        yield from _rows(batches, file.schema_arrow, name, wanted)


def read_saved(rows: datasets.Dataset, name: str, wanted: Sequence[str]) -> Iterator[Row]:
    """The same of a dataset that `save_to_disk` wrote, or that an earlier command downloaded."""
    schema = rows.features.arrow_schema
    top = _top_levels(schema, wanted)
    batches = rows.select_columns(top).with_format("arrow").iter(ROWS_OF_A_BATCH) if top else ()
    yield from _rows(batches, schema, name, wanted)


def _rows(
    batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema, name: str, wanted: Sequence[str]
) -> Iterator[Row]:
    for column in wanted[:2]:
        if not _has(schema, column):
            raise MissingColumnError(name, column, list(_dotted(schema)))
    number = 0
    for batch in batches:
        columns = [_cells(batch, column) if _has(schema, column) else [None] * len(batch) for column in wanted]
        for cells in zip(*columns, strict=True):
            number += 1
            yield f"{name}, row {number}", cells


def class_names(features: datasets.Features | None, column: str) -> list[str] | None:
    """The names that a dataset gives to the labels 0, 1, ... of a column."""
    feature: Any = features
    for key in [column] if features is not None and column in features else column.split("."):
        feature = feature.get(key) if isinstance(feature, dict) else None
    return list(feature.names) if isinstance(feature, datasets.ClassLabel) else None


def parquet_features(path: Path) -> datasets.Features | None:
    """The features that `datasets` noted in a parquet file; None where it did not write the file."""
    with faults_of(str(path)):
        schema = pq.read_schema(path)
    is_of_datasets = bool(schema.metadata) and b"huggingface" in schema.metadata
    return datasets.Features.from_arrow_schema(schema) if is_of_datasets else None


def _cells(batch: pa.RecordBatch | pa.Table, column: str) -> list[Cell]:
    if column in batch.schema.names:
        array = batch.column(column)
    else:
        top, *path = column.split(".")
        array = pc.struct_field(batch.column(top), path)
    return _as_text(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)


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


def _top_levels(schema: pa.Schema, wanted: Sequence[str]) -> list[str]:
    tops = [column if column in schema.names else column.partition(".")[0] for column in wanted]
    return [top for top in dict.fromkeys(tops) if top in schema.names]


def _has(schema: pa.Schema, column: str) -> bool:
    return column in schema.names or column in _dotted(schema)


def _dotted(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[str]:
    """The names of the columns."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _dotted(field.type, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"
