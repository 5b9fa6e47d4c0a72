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
    source=torch.full((2, 4), 5),
    source_mask=REAL,
    labels=torch.tensor([1, 0]),
    rows=torch.tensor([8, 9]),
)


both_kinds = pytest.mark.parametrize("batch", [PAIRS, LABELLED], ids=["pairs", "labelled"])


@both_kinds
def test_batch_to_device_moves_every_tensor_and_leaves_the_original(batch):
    moved, copied = batch.to("meta"), batch.to(torch.device("cpu"))
    assert type(moved) is type(batch)
    assert len(moved) == len(batch) == 2
    for field in fields(batch):
        before, after = getattr(batch, field.name), getattr(moved, field.name)
        assert (before.device.type, after.device.type) == ("cpu", "meta")
        assert (after.shape, after.dtype) == (before.shape, before.dtype)
        assert torch.equal(getattr(copied, field.name), before)


def test_batch_target_tokens_exclude_pads():
    assert PAIRS.num_target_tokens == 5


def test_batch_token_count_after_a_move_needs_no_device_sync():
    moved = PAIRS.to("meta")  # numbers there cannot be read
    assert moved.num_target_tokens == moved.to("meta").num_target_tokens == 5


@both_kinds
def test_batch_pin_memory_pins_every_tensor(batch, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + tensor.new_zeros(()))
    pinned = batch.pin_memory()
    assert type(pinned) is type(batch)
    for field in fields(batch):
        before, after = getattr(batch, field.name), getattr(pinned, field.name)
        assert after is not before
        assert torch.equal(after, before)


@pytest.mark.parametrize(
    ("device", "waits"), [("cuda", False), ("cuda:1", False), ("cpu", True), ("mps", True)]
)
@both_kinds
def test_batch_copy_is_non_blocking_only_to_cuda(batch, device, waits, monkeypatch):
    asked = []
    monkeypatch.setattr(
        torch.Tensor, "to", lambda tensor, *where, **how: asked.append((where, how)) or tensor
    )
    batch.to(device)
    assert asked == [((device,), {"non_blocking": not waits})] * len(fields(batch))
