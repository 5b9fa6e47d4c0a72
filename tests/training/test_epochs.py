"""Epochs of different numbers of batches, as `batching.by=tokens` makes them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import pytorch_lightning as pl

from attnlab.batch import Padding
from attnlab.data.datamodule import EpochLengths, SeqDataModule
from attnlab.data.sampler import Batching, BatchSampler
from attnlab.training.training_length import EPOCHS_COUNTED, length_of

EPOCHS = 4


class RowsOfEpochs(pl.Callback):
    """Counts how often each row of an epoch is trained on, and where epochs end by Lightning."""

    def __init__(self) -> None:
        self.rows: dict[int, Counter[int]] = {}
        self.last_batches = 0
        self.validated_at: list[int] = []

    def on_train_batch_end(self, trainer: pl.Trainer, module: Any, out: Any, batch: Any, i: int):
        self.rows.setdefault(trainer.current_epoch, Counter()).update(batch.rows.tolist())
        self.last_batches += trainer.is_last_batch

    def on_validation_start(self, trainer: pl.Trainer, module: Any) -> None:
        self.validated_at.append(trainer.global_step)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "batching",
    [Batching("tokens", size=24, pool=2), Batching("tokens", size=40, bucketed=False)],
    ids=repr,
)
def test_each_epoch_of_batches_by_tokens_has_every_row_once(train, prepared, batching, workers):
    seen = RowsOfEpochs()
    choices = {"max_steps": None, "max_epochs": EPOCHS, "batching": batching}
    run = train(**choices, validate_every=None, callbacks=[seen], on={"workers": workers})

    lengths = run.batches.epoch_lengths()
    assert lengths.differ
    of_epochs = [lengths.of_epoch(epoch) for epoch in range(EPOCHS)]
    assert len(set(of_epochs)) > 1  # or this tests nothing
    once = Counter(range(len(prepared.split("train"))))
    assert seen.rows == dict.fromkeys(range(EPOCHS), once)
    assert seen.last_batches == EPOCHS

    ends = [sum(of_epochs[: epoch + 1]) for epoch in range(EPOCHS)]
    assert run.trainer.global_step == ends[-1]
    assert seen.validated_at == ends


def test_epochs_are_counted_with_the_batches_of_all_processes(prepared):
    """Each of eight processes needs a row of every batch."""
    batches = SeqDataModule(prepared, Batching("tokens", size=24, pool=2), Padding())
    for processes in (1, 8):
        split = prepared.split("train")
        sampler = BatchSampler(
            split.source_lengths, split.target_lengths, batches.batching, world_size=processes
        )
        lengths = batches.epoch_lengths(processes)
        assert lengths.differ
        assert lengths.of_epoch(0) == len(sampler)
    assert len({batches.epoch_lengths(each).of_epoch(0) for each in (1, 8)}) == 2


def test_epochs_behind_those_that_are_counted_are_as_long_as_their_mean(settings):
    """So that a training that ends by its patience is not planned to its last epoch."""
    counted = []

    def length(epoch: int) -> int:
        counted.append(epoch)
        return 10 + epoch % 2

    endless = settings(max_steps=None, max_epochs=100_000, validate_every=50)
    found = length_of(endless, EpochLengths(length, differ=True))
    assert (found.steps, found.validate_every) == (1_050_000, 50)
    assert max(counted) == EPOCHS_COUNTED - 1


def test_epochs_of_batches_by_sentences_have_one_length(train):
    run = train(max_steps=2)
    lengths = run.batches.epoch_lengths()
    assert not lengths.differ
    assert lengths.of_epoch(7) == 3
