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
    seed: of the order of the pairs; null: the experiment's, which draws the weights, too.
    """

    by: Literal["sentences", "tokens"] = "sentences"
    size: Annotated[int, Field(ge=1)] = 64
    bucketed: bool = True
    pool: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None


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
        self.source_lengths = np.asarray(source_lengths)
        self.target_lengths = np.asarray(target_lengths)
        self.batching = batching
        self.seed = seed
        self.shuffle = shuffle
        self.rank = rank
        self.world_size = world_size
        self.parts = parts
        self.epoch = 0
        self._skipped = 0
        self._epoch_of_skip: int | None = None  # None until that epoch is iterated
        self._planned: tuple[int, list[Rows]] | None = None  # an epoch, and its batches

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is that of `epoch`."""
        self.epoch = epoch

    def skip(self, batches: int) -> None:
        """Skip the first `batches` batches, or pieces of them, of the next epoch only.

        That epoch may be iterated several times: a loader with workers does so twice before it asks
        for a batch.
        """
        self._skipped = batches
        self._epoch_of_skip = None

    def __iter__(self) -> Iterator[Rows]:
        if self._epoch_of_skip is None:
            self._epoch_of_skip = self.epoch
        skipped = self._skipped if self.epoch == self._epoch_of_skip else 0
        return itertools.islice(self._pieces(), skipped, None)

    def _pieces(self) -> Iterator[Rows]:
        """The pieces of every batch that this process takes."""
        num_pieces = self.world_size * self.parts
        for batch in self.batches():
            for piece in range(self.rank, num_pieces, self.world_size):
                yield batch[piece::num_pieces]

    def __len__(self) -> int:
        return len(self.batches()) * self.parts

    @property
    def epochs_differ(self) -> bool:
        """Whether epochs may have different numbers of batches.

        A batch that is bounded by its tokens ends where the next pair is too long, and each epoch
        has the pairs in another order. Sorted as a whole, the lengths come in one order.
        """
        is_sorted = self.batching.bucketed and self.batching.pool is None
        return self.shuffle and self.batching.by == "tokens" and not is_sorted

    def batches(self) -> list[Rows]:
        """The global batches of the current epoch."""
        epoch = self.epoch if self.shuffle else 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self._plan(epoch))
        return self._planned[1]

    def _plan(self, epoch: int) -> list[Rows]:
        """The global batches of an epoch."""
        if not self.shuffle:
            order = np.arange(len(self.source_lengths))
            return self._fill(self._cut(self._by_length(order)))

        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.source_lengths))
        if not self.batching.bucketed:
            return self._fill(self._cut(order))

        # Sort within pools of shuffled rows, cut each into batches, and shuffle the batches.
        pool = len(order)
        if self.batching.pool is not None:
            pool = self.batching.pool * self._pairs_per_batch()
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
        source = self.source_lengths[rows].astype(np.int64)
        target = self.target_lengths[rows]
        in_turns = np.where(target % 2 == 0, source, -source)
        return rows[np.lexsort((in_turns, target))]  # lexsort's last key is the first to count

    def _widths(self, rows: Rows) -> NDArray[np.integer]:
        """The longer side of each row, in tokens, `<eos>` counted."""
        return np.maximum(self.source_lengths[rows], self.target_lengths[rows]) + 1

    def _pairs_per_batch(self) -> int:
        """The number of pairs in a batch, or about how many on average where tokens are counted."""
        if self.batching.by == "sentences":
            return self.batching.size
        widths = self._widths(np.arange(len(self.source_lengths)))
        return max(1, int(self.batching.size / widths.mean()))

    def _cut(self, order: Rows) -> list[Rows]:
        """Rows in batches of at most `size` pairs or tokens, in the order given."""
        size = self.batching.size
        if self.batching.by == "sentences":
            return [order[start : start + size] for start in range(0, len(order), size)]

        batches = []
        start = 0
        widest = 0
        for i, width in enumerate(self._widths(order).tolist()):
            widest = max(widest, width)
            pairs = i + 1 - start
            if pairs > 1 and widest * pairs > size:
                batches.append(order[start:i])
                start = i
                widest = width
        return [*batches, order[start:]]

    def _fill(self, batches: list[Rows]) -> list[Rows]:
        """The batches, of which those with too few rows take some from a neighbour.

        If that leaves the neighbour with too few, the two are merged.
        """
        filled: list[Rows] = []
        for batch in batches:
            if not len(batch):
                continue
            if not filled:
                filled.append(batch)
                continue
            before = filled.pop()
            missing = self._missing(batch)
            missing_before = self._missing(before)
            if missing <= 0 and missing_before <= 0:
                filled += [before, batch]
                continue

            # Move the border between the two, towards the one that has rows to give.
            both = np.concatenate([before, batch])
            border = len(before) - missing if missing > 0 else len(before) + missing_before
            before = both[:border]
            batch = both[border:]
            if self._missing(before) > 0 or self._missing(batch) > 0:
                filled.append(both)
            else:
                filled += [before, batch]
        return filled

    def _missing(self, batch: Rows) -> int:
        """How many rows a batch lacks; negative for one that has rows to give.

        The fewest that it may have are one for each piece, and two where the size allows it, so
        that one process has the same batches as two.
        """
        width = 1
        if self.batching.by == "tokens" and len(batch):
            width = int(self._widths(batch).max())
        fewest = max(self.world_size * self.parts, min(2, self.batching.size // width))
        return fewest - len(batch)
