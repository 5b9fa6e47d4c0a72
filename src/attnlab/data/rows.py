"""Arrow files of prepared rows: written in groups, read batch by batch or mapped."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnlab.data.padding import Ragged

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


def list_array(ids: Ragged) -> pa.Array:
    """Rows of ids as `RowGroups` takes them: a list of int32 each."""
    return pa.ListArray.from_arrays(pa.array(ids.offsets, pa.int32()), pa.array(ids.values, pa.int32()))


class MappedIds:
    """A column of lists of int32, in the groups that `RowGroups` wrote.

    lengths: (rows,) of the lists.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        # Views of the file: making them reads nothing.
        self._groups = [
            Ragged(group.values.to_numpy(zero_copy_only=True), group.offsets.to_numpy(zero_copy_only=True))
            for group in column.chunks
        ]
        self._starts = np.cumsum([0, *map(len, self._groups)]).tolist()
        self.lengths: NDArray[np.int32] = np.concatenate(
            [np.empty(0, np.int32), *(group.lengths for group in self._groups)]
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        group = bisect(self._starts, row) - 1
        return self._groups[group][row - self._starts[group]]

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """The chosen rows, in the order given."""
        return Ragged.from_rows([self[row] for row in rows.tolist()])
