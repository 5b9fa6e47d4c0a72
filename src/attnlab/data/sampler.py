"""Batches of rows, bucketed by length.

They are the same for any number of processes and loader workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch.utils.data import Sampler

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Batching:
    """How training pairs are put into batches.

    by: `sentences` counts pairs; `tokens` bounds pairs x the longest side in the batch, `<eos>`
        counted. Where only a few of the longest pairs fit, a batch of two or three may exceed it.
    size: of the whole batch, over all processes.
    bucketed: pairs of like lengths go together, which leaves few pads.
    pool: lengths are sorted within so many batches of shuffled pairs; null sorts the whole epoch.
    """

    by: Literal["sentences", "tokens"] = "sentences"
    size: Annotated[int, Field(ge=1)] = 64
    bucketed: bool = True
    pool: Annotated[int, Field(ge=1)] | None = None


class BatchSampler(Sampler[Rows]):
    """Yields the row numbers of one batch after the other.

    The sequence of global batches is a function of (lengths, batching, seed, epoch) alone, the same
    for one and for two processes. Each process takes `batch[rank::world_size]` of every batch, so
    that all make the same number of steps. So a batch has at least two rows, and one for each
    process: one with fewer gets rows of its neighbour, or joins it, and may then exceed `size` by a
    few long sentences. Only a sentence that takes more than half of a batch's tokens is alone in
    one process and not in two; three and more processes move other rows.

    source_lengths, target_lengths: (rows,) without `<eos>`.
    parts: each batch is given in so many pieces, one after the other.
    shuffle: False gives the order for evaluation: by length, the same in every epoch.
    """

    def __init__(
        self,
        source_lengths: NDArray[np.integer],
        target_lengths: NDArray[np.integer],
        batching: Batching,
        *,
        seed: int = 0,
        shuffle: bool = True,
        rank: int = 0,
        world_size: int = 1,
        parts: int = 1,
    ) -> None:
        if len(source_lengths) < world_size * parts:
            pieces = (
                f"{world_size} processes"
                if parts == 1
                else f"{parts} parts of a batch in {world_size} process(es)"
            )
            raise ValueError(f"there must be a row for each of {pieces}, got {len(source_lengths)}")
        self.source_lengths, self.target_lengths = (
            np.asarray(source_lengths),
            np.asarray(target_lengths),
        )
        self.batching, self.seed, self.shuffle = batching, seed, shuffle
        self.rank, self.world_size, self.parts = rank, world_size, parts
        self.epoch = 0
        self._skipped = 0
        self._epoch_of_skip: int | None = None
        self._planned: tuple[int, list[Rows]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is that of `epoch`."""
        self.epoch = epoch

    def skip(self, batches: int) -> None:
        """Skip the first `batches` batches, or pieces of them, of the next epoch only.

        That epoch may be iterated several times: a loader with workers does so twice before it asks
        for a batch.
        """
        self._skipped, self._epoch_of_skip = batches, None

    def __iter__(self) -> Iterator[Rows]:
        if self._epoch_of_skip is None:
            self._epoch_of_skip = self.epoch
        skipped = self._skipped if self.epoch == self._epoch_of_skip else 0
        firsts = range(self.rank, self.world_size * self.parts, self.world_size)
        pieces = (
            batch[first :: self.world_size * self.parts]
            for batch in self.batches()
            for first in firsts
        )
        return itertools.islice(pieces, skipped, None)

    def __len__(self) -> int:
        return len(self.batches()) * self.parts

    def batches(self) -> list[Rows]:
        """The global batches of the current epoch."""
        epoch = self.epoch if self.shuffle else 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self._plan(epoch))
        return self._planned[1]

    def _plan(self, epoch: int) -> list[Rows]:
        if not self.shuffle:
            order = np.arange(len(self.source_lengths))
            return self._fill(self._cut(self._by_length(order)))
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.source_lengths))
        if not self.batching.bucketed:
            return self._fill(self._cut(order))
        pool = (
            len(order)
            if self.batching.pool is None
            else self.batching.pool * self._pairs_per_batch()
        )
        batches: list[Rows] = []
        for start in range(0, len(order), pool):
            batches += self._cut(self._by_length(order[start : start + pool]))
        batches = self._fill(batches)
        return [batches[i] for i in random.permutation(len(batches))]

    def _by_length(self, rows: Rows) -> Rows:
        """The rows sorted by target length, and within one by source length.

        Each target token is a step of the decoder. Source lengths ascend and descend in turns, so
        that neighbours are alike where one target length ends and the next begins. The sort is
        stable: ties stay in the order given.
        """
        source, target = self.source_lengths[rows].astype(np.int64), self.target_lengths[rows]
        return rows[np.lexsort((np.where(target % 2 == 0, source, -source), target))]

    def _pairs_per_batch(self) -> int:
        if self.batching.by == "sentences":
            return self.batching.size
        longest = np.maximum(self.source_lengths, self.target_lengths) + 1
        return max(1, int(self.batching.size / longest.mean()))

    def _cut(self, order: Rows) -> list[Rows]:
        size = self.batching.size
        if self.batching.by == "sentences":
            return [order[start : start + size] for start in range(0, len(order), size)]
        longest = (np.maximum(self.source_lengths, self.target_lengths)[order] + 1).tolist()
        batches, start, widest = [], 0, 0
        for i, length in enumerate(longest):
            widest = max(widest, length)
            if i > start and widest * (i + 1 - start) > size:
                batches.append(order[start:i])
                start, widest = i, length
        return [*batches, order[start:]]

    def _fill(self, batches: list[Rows]) -> list[Rows]:
        """The batches, of which those with too few rows take some from a neighbour.

        If that leaves the neighbour with too few, the two are merged.
        """
        filled: list[Rows] = []
        for batch in batches:
            before = filled.pop() if filled else batch[:0]
            ours, theirs = self._fewest(batch) - len(batch), self._fewest(before) - len(before)
            if len(before) and (ours > 0 or theirs > 0):
                both = np.concatenate([before, batch])
                border = len(before) + (-ours if ours > 0 else theirs)
                before, batch = both[:border], both[border:]
                if min(len(before) - self._fewest(before), len(batch) - self._fewest(batch)) < 0:
                    before, batch = both[:0], both
            filled += [part for part in (before, batch) if len(part)]
        return filled

    def _fewest(self, batch: Rows) -> int:
        """The fewest rows that a batch may have: one for each piece.

        It is two where the size allows it, so that one process has the same batches as two.
        """
        width = 1
        if self.batching.by == "tokens" and len(batch):
            width = 1 + int(
                np.maximum(self.source_lengths[batch], self.target_lengths[batch]).max()
            )
        return max(self.world_size * self.parts, min(2, self.batching.size // width))
