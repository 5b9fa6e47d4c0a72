"""Prepared data as Lightning's data loaders of padded batches."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from pytorch_lightning.accelerators import CUDAAccelerator
from torch.utils.data import DataLoader, Dataset

from attnlab.batch import Padding
from attnlab.data.prepared import PreparedFolder
from attnlab.data.sampler import Batching, BatchSampler


@dataclass(frozen=True)
class EpochLengths:
    """How many batches the training loader gives, each piece of a batch counted.

    of_epoch: in the epoch with a number, from 0 on.
    differ: whether not all epochs have as many.
    """

    of_epoch: Callable[[int], int]
    differ: bool

    @classmethod
    def all_alike(cls, batches: int) -> EpochLengths:
        return cls(lambda epoch: batches, differ=False)


class BatchedRows(Dataset[Any]):
    """The batches of a split: an index is the row numbers of a whole batch."""

    def __init__(self, split: Any, padding: Padding) -> None:
        self.split = split
        self.padding = padding

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, rows: NDArray[np.int64]) -> Any:
        return self.split.batch(rows, self.padding)


class ResumableLoader(DataLoader[Any]):
    """A loader that can resume in the middle of an epoch, as Lightning expects of it.

    consumed: the batches of the present epoch that training has done with; workers have fetched
        more of them.
    """

    def __init__(
        self, dataset: Dataset[Any], sampler: BatchSampler, consumed: Callable[[], int], **more: Any
    ) -> None:
        super().__init__(dataset, sampler=sampler, **more)
        self._consumed = consumed

    def state_dict(self) -> dict[str, int]:
        return {"batches": self._consumed()}

    def load_state_dict(self, state: dict[str, int]) -> None:
        assert isinstance(self.sampler, BatchSampler)
        self.sampler.skip(state["batches"])


class SeqDataModule(pl.LightningDataModule):
    """The loaders of the three splits.

    The trainer must have `use_distributed_sampler=False`: the batches are shared out among
    processes here. Lightning calls `set_epoch` of the training loader's sampler, so every epoch has
    an order of its own. Validation and test are never shuffled.

    accumulate: the pieces that a training batch comes in, one after the other.
    """

    def __init__(
        self,
        data: PreparedFolder[Any, Any],
        batching: Batching,
        padding: Padding,
        *,
        seed: int = 0,
        num_workers: int = 0,
        accumulate: int = 1,
    ) -> None:
        super().__init__()
        self.data = data
        self.batching = batching
        self.padding = padding
        self.seed = seed
        self.num_workers = num_workers
        self.accumulate = accumulate

    def epoch_lengths(self, processes: int = 1) -> EpochLengths:
        """How many batches the training loader gives in each epoch.

        processes: that train. Each needs a row of every batch, so that many of them may get fewer
            and larger batches.
        """
        sampler = self._sampler("train", shuffle=True, world_size=processes)
        if not sampler.epochs_differ:
            return EpochLengths.all_alike(len(sampler))

        @cache
        def length(epoch: int) -> int:
            sampler.set_epoch(epoch)
            return len(sampler)

        return EpochLengths(length, differ=True)

    def train_dataloader(self) -> DataLoader[Any]:
        return self._loader("train", shuffle=True)

    def val_dataloader(self) -> DataLoader[Any]:
        return self._loader("validation", shuffle=False)

    def test_dataloader(self) -> DataLoader[Any]:
        return self._loader("test", shuffle=False)

    def _sampler(
        self, name: str, shuffle: bool, rank: int = 0, world_size: int = 1
    ) -> BatchSampler:
        split = self.data.split(name)
        return BatchSampler(
            split.source_lengths,
            split.target_lengths,
            self.batching,
            seed=self.seed,
            shuffle=shuffle,
            rank=rank,
            world_size=world_size,
            parts=self.accumulate if shuffle else 1,
        )

    def _loader(self, name: str, shuffle: bool) -> DataLoader[Any]:
        trainer = self.trainer
        rank = 0
        world_size = 1
        epoch = None
        is_on_gpu = False
        if trainer:  # None outside of a training
            rank = trainer.global_rank
            world_size = trainer.world_size
            epoch = trainer.current_epoch
            is_on_gpu = isinstance(trainer.accelerator, CUDAAccelerator)

        sampler = self._sampler(name, shuffle, rank, world_size)
        if epoch is not None:
            sampler.set_epoch(epoch)
        return ResumableLoader(
            BatchedRows(self.data.split(name), self.padding),
            batch_size=None,  # the sampler gives whole batches
            sampler=sampler,
            consumed=self._consumed,
            num_workers=self.num_workers,
            # A GPU copies from pinned memory while the process goes on.
            pin_memory=is_on_gpu,
            collate_fn=_unchanged,
            worker_init_fn=_ignore_ctrl_c,
            # Without its own generator, every pass over a loader would draw from dropout's.
            generator=torch.Generator().manual_seed(self.seed),
        )

    def _consumed(self) -> int:
        """The batches of the present epoch that training has done with."""
        if not self.trainer:
            return 0
        return self.trainer.fit_loop.epoch_loop.batch_progress.current.completed


def _unchanged(batch: Any) -> Any:
    """The batch, which a loader would otherwise collate once more."""
    return batch


def _ignore_ctrl_c(worker: int) -> None:
    """Ignore Ctrl-C in a loader worker.

    A terminal sends it to the workers, too, but training needs them until its current step has
    ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
