"""Rows on their way from a corpus to an Arrow file, a thousand at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

if TYPE_CHECKING:
    import datasets

_ROWS = 1_000
_GROUP = 50 * _ROWS


def batches_of_rows(dataset: datasets.Dataset) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """(number of the first row, columns) of one batch after the other."""
    start = 0
    for rows in dataset.iter(batch_size=_ROWS):
        yield start, rows
        start += _ROWS


class RowGroups:
    """Writes an Arrow file in groups of many batches, uncompressed, so that it can be mapped.

    The footer that lists the groups comes last: a file that was not written to its end cannot be opened.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema, self._writer = schema, pa.ipc.new_file(str(path), schema)
        self._pending: list[pa.Table] = []

    def add(self, columns: Mapping[str, Sequence[Any] | pa.Array]) -> None:
        self._pending.append(pa.table(columns, schema=self._schema))
        if sum(table.num_rows for table in self._pending) >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending).combine_chunks())
        self._pending.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._flush()
        self._writer.close()


def open_rows(path: Path) -> pa.Table:
    """What `RowGroups` wrote. The file is mapped: a row is read when somebody looks at it."""
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    table.validate()
    return table


def batches_of_file(path: Path) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(number of the first row, columns) of one batch after the other, of what `RowGroups` wrote.

    Only one group is in memory at a time.
    """
    start = 0
    with pa.OSFile(str(path)) as file:
        groups = pa.ipc.open_file(file)
        for i in range(groups.num_record_batches):
            for rows in pa.Table.from_batches([groups.get_batch(i)]).to_batches(max_chunksize=_ROWS):
                yield start, rows
                start += len(rows)


def none_left(split: str, dropped: Counter[str], places: str) -> str:
    """The sentence for a split without a usable row; `places` are the settings that name its columns."""
    if not dropped:
        return f"data: the {split} split has no rows at all; see data.splits for where they come from"
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
    return (
        f"data: nothing is left of the {split} split; {sum(dropped.values())} rows were dropped ({reasons}); "
        f"see data.cleaning for the limits and {places} for the columns"
    )


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
