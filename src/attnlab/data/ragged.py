"""Rows of unequal length as one flat array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ragged:
    """`values[offsets[i]:offsets[i + 1]]` is row i."""

    values: NDArray[np.int32]  # (sum of lengths,)
    offsets: NDArray[np.int64]  # (rows + 1,)

    @classmethod
    def from_rows(cls, rows: Sequence[NDArray[np.integer] | Sequence[int]]) -> Ragged:
        offsets = _offsets(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
        if rows and all(isinstance(row, np.ndarray) for row in rows):
            return cls(np.concatenate(rows, dtype=np.int32), offsets)
        return cls(np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=offsets[-1]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        if not 0 <= row < len(self):
            raise IndexError(f"row must be between 0 and {len(self) - 1}, got {row}")
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """The chosen rows, in the order given."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        offsets = _offsets(lengths)
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Ragged(self.values[places], offsets)


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
