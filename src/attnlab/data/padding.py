"""Rows of ids of unequal length: as one flat array, and as a padded batch.

Axes: B batch, S source length, T target length, both with `<eos>` counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import BOS, EOS, PAD, Batch, LabelledBatch, Padding


@dataclass(frozen=True)
class Ragged:
    """`values[offsets[i]:offsets[i + 1]]` is row i."""

    values: NDArray[np.int32]  # (sum of lengths,)
    offsets: NDArray[np.int64]  # (rows + 1,)

    @classmethod
    def from_rows(cls, rows: Sequence[NDArray[np.integer] | Sequence[int]]) -> Ragged:
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        offsets = _offsets(lengths)
        if rows and all(isinstance(row, np.ndarray) for row in rows):
            return cls(np.concatenate(rows, dtype=np.int32), offsets)
        ids = chain.from_iterable(rows)
        return cls(np.fromiter(ids, dtype=np.int32, count=offsets[-1]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """The chosen rows, in the order given."""
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        offsets = _offsets(lengths)
        # How far each row lies in the old values from where it comes to lie in the new ones.
        shifts = self.offsets[rows] - offsets[:-1]
        places = np.arange(offsets[-1]) + np.repeat(shifts, lengths)
        return Ragged(self.values[places], offsets)


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where rows of these lengths start, one after the other, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def make_batch(
    source: Sequence[Sequence[int] | NDArray[np.integer]],
    target: Sequence[Sequence[int] | NDArray[np.integer]],
    padding: Padding,
    rows: Sequence[int] | None = None,
) -> Batch:
    """A batch of ids given row by row, without `<bos>` and `<eos>`: these are put in here."""
    if rows is None:
        rows = range(len(source))
    numbers = np.asarray(rows, dtype=np.int64)
    return pad_pairs(Ragged.from_rows(source), Ragged.from_rows(target), numbers, padding)


def pad_pairs(source: Ragged, target: Ragged, rows: NDArray[np.int64], padding: Padding) -> Batch:
    """A batch of already chosen rows; `rows` only names them."""
    source_ids, source_mask = _pad(source, padding.encoder, EOS, before=False)
    target_input, target_mask = _pad(target, padding.decoder, BOS, before=True)
    target_output, _ = _pad(target, padding.decoder, EOS, before=False)
    return Batch(
        source=source_ids,
        source_mask=source_mask,
        target_input=target_input,
        target_output=target_output,
        target_mask=target_mask,
        rows=_as_tensor(rows),
    )


def pad_labelled(
    sentences: Ragged, labels: NDArray[np.int64], rows: NDArray[np.int64], padding: Padding
) -> LabelledBatch:
    """A batch of already chosen sentences, padded as sources are; `rows` only names them."""
    source, source_mask = _pad(sentences, padding.encoder, EOS, before=False)
    return LabelledBatch(
        source=source,
        source_mask=source_mask,
        labels=_as_tensor(labels),
        rows=_as_tensor(rows),
    )


def _as_tensor(numbers: NDArray[np.int64]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.int64))


def _pad(
    ids: Ragged, side: Literal["pre", "post"], special: int, before: bool
) -> tuple[Tensor, Tensor]:
    """The padded ids, (B, longest + 1) long, and the mask of real tokens.

    `special` is added before or after each row.
    """
    lengths = ids.lengths[:, None]  # (B, 1)
    width = int(ids.lengths.max(initial=0)) + 1
    pads_first = width - 1 - lengths if side == "pre" else np.zeros_like(lengths)
    places = np.arange(width)[None, :] - pads_first  # (B, width), 0 is the row's first real token
    mask = (places >= 0) & (places <= lengths)
    is_special = places == (0 if before else lengths)
    padded = np.full(mask.shape, PAD, dtype=np.int64)
    padded[is_special] = special
    padded[mask & ~is_special] = ids.values
    return torch.from_numpy(padded), torch.from_numpy(mask)
