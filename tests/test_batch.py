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


def test_count_of_tokens_is_known_after_a_move_without_a_look_at_the_device():
    moved = PAIRS.to("meta")  # numbers there cannot be read
    assert moved.num_target_tokens == moved.to("meta").num_target_tokens == 5


@pytest.mark.parametrize("batch", [PAIRS, LABELLED], ids=["pairs", "labelled"])
def test_pinning_a_batch_pins_every_tensor_of_it(batch, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + tensor.new_zeros(()))
    pinned = batch.pin_memory()
    assert type(pinned) is type(batch)
    for field in fields(batch):
        before, after = getattr(batch, field.name), getattr(pinned, field.name)
        assert after is not before
        assert torch.equal(after, before)


@pytest.mark.parametrize(("device", "waits"), [("cuda", False), ("cuda:1", False), ("cpu", True), ("mps", True)])
@pytest.mark.parametrize("batch", [PAIRS, LABELLED], ids=["pairs", "labelled"])
def test_only_a_copy_to_cuda_is_not_waited_for(batch, device, waits, monkeypatch):
    asked = []
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *where, **how: asked.append((where, how)) or tensor)
    batch.to(device)
    assert asked == [((device,), {"non_blocking": not waits})] * len(fields(batch))
