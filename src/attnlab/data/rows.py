"""Arrow files of prepared rows: read batch by batch, or mapped.

The footer of such a file comes last: one that was not written to its end cannot be opened. They are
not compressed, so that they can be mapped.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnlab.data.padding import Ragged


def open_rows(path: Path) -> pa.Table:
    """All rows. The file is memory-mapped: a row is read from disk when it is used."""
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    table.validate()
    return table


def batches_of_file(path: Path) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(number of the first row, columns) of each batch of a file.

    Only one batch is in memory at a time.
    """
    start = 0
    with pa.OSFile(str(path)) as file:
        batches = pa.ipc.open_file(file)
        for i in range(batches.num_record_batches):
            rows = batches.get_batch(i)
            yield start, rows
            start += len(rows)


def list_array(ids: Ragged) -> pa.Array:
    """Rows of ids as a column of lists of int32."""
    return pa.ListArray.from_arrays(
        pa.array(ids.offsets, pa.int32()), pa.array(ids.values, pa.int32())
    )


class MappedIds:
    """A column of lists of int32, in the batches that were written.

    lengths: (rows,) of the lists.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._batches = [_view(batch) for batch in column.chunks]
        # The number of each batch's first row, and of all rows.
        sizes = [len(batch) for batch in self._batches]
        self._starts = np.cumsum([0, *sizes]).tolist()
        lengths = [batch.lengths for batch in self._batches]
        no_rows = np.empty(0, np.int32)  # of a file without batches
        self.lengths: NDArray[np.int32] = np.concatenate([no_rows, *lengths])

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        batch = bisect(self._starts, row) - 1
        return self._batches[batch][row - self._starts[batch]]

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """The chosen rows, in the order given."""
        return Ragged.from_rows([self[row] for row in rows.tolist()])


def _view(batch: pa.ListArray) -> Ragged:
    """Lists as a view of their file: making it reads nothing."""
    values = batch.values.to_numpy(zero_copy_only=True)
    offsets = batch.offsets.to_numpy(zero_copy_only=True)
    return Ragged(values, offsets)
