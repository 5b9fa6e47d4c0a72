"""A batch as a whole: its size, its tokens, and the way to another device."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from attnlab.batch import Batch, LabelledBatch

REAL = torch.tensor([[True, True, True, False], [True, True, False, False]])
PAIRS = Batch(
    source=torch.full((2, 4), 5),
    source_mask=REAL,
    target_input=torch.full((2, 4), 6),
    target_output=torch.full((2, 4), 7),
    target_mask=REAL,
    rows=torch.tensor([8, 9]),
)
LABELLED = LabelledBatch(
    source=torch.full((2, 4), 5), source_mask=REAL, labels=torch.tensor([1, 0]), rows=torch.tensor([8, 9])
)


@pytest.mark.parametrize("batch", [PAIRS, LABELLED], ids=["pairs", "labelled"])
def test_moving_a_batch_moves_all_of_it_and_leaves_the_old_one(batch):
    moved = batch.to("meta")
    assert type(moved) is type(batch)
    for field in fields(batch):
        before, after = getattr(batch, field.name), getattr(moved, field.name)
        assert (before.device.type, after.device.type) == ("cpu", "meta")
        assert (after.shape, after.dtype) == (before.shape, before.dtype)


@pytest.mark.parametrize("batch", [PAIRS, LABELLED], ids=["pairs", "labelled"])
def test_moving_a_batch_changes_no_number(batch):
    moved = batch.to(torch.device("cpu"))
    assert all(torch.equal(getattr(moved, field.name), getattr(batch, field.name)) for field in fields(batch))


@pytest.mark.parametrize("batch", [PAIRS, LABELLED], ids=["pairs", "labelled"])
def test_a_batch_is_as_long_as_it_has_sentences(batch):
    assert len(batch) == 2


def test_pads_are_no_target_tokens():
    assert PAIRS.num_target_tokens == 5
