"""The ids of a split where they lie: in a mapped file, of which only the lengths are in memory."""

from __future__ import annotations

from bisect import bisect

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnlab.data.ragged import Ragged


def list_array(ids: Ragged) -> pa.Array:
    """Rows of ids as `RowGroups` takes them: a list of int32 each."""
    return pa.ListArray.from_arrays(pa.array(ids.offsets, pa.int32()), pa.array(ids.values, pa.int32()))


class MappedIds:
    """A column of lists of int32, in the groups that `RowGroups` wrote.

    lengths: (rows,) of the lists.

    Raises TypeError for a column of anything else.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        if column.type != pa.list_(pa.int32()):
            raise TypeError(f"a column of ids must hold lists of int32, got {column.type}")
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
        if not 0 <= row < len(self):
            raise IndexError(f"row must be between 0 and {len(self) - 1}, got {row}")
        group = bisect(self._starts, row) - 1
        return self._groups[group][row - self._starts[group]]

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """The chosen rows, in the order given."""
        return Ragged.from_rows([self[row] for row in rows.tolist()])
