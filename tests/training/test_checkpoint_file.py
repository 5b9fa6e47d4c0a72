"""A checkpoint is there whole or not at all, and a damaged one is known."""

from __future__ import annotations

import errno
import os

import pytest
import torch

from attnlab.errors import ExperimentError
from attnlab.training.checkpoint_file import CheckpointFiles, checkpoint_step


@pytest.fixture
def last(tmp_path):
    path = tmp_path / "last.ckpt"
    CheckpointFiles().save_checkpoint({"global_step": 7, "weights": torch.arange(10_000.0)}, path)
    return path


def test_checkpoint_step_of_an_undamaged_file_returns_the_step(last):
    assert checkpoint_step(last) == 7


@pytest.mark.parametrize("place", [0.02, 0.3, 0.5, 0.7, 0.98])
def test_one_byte_in_the_weights_is_enough(last, place):
    content = bytearray(last.read_bytes())
    start = content.index(torch.arange(10_000.0).numpy().tobytes()[:64])
    content[start + int(place * 40_000)] ^= 1
    last.write_bytes(content)
    with pytest.raises(ValueError, match="does not have its checksum"):
        checkpoint_step(last)


@pytest.mark.parametrize("length", [0, 1, 100, 20_000, -1])
def test_a_truncated_one_is_refused(last, length):
    last.write_bytes(last.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"\w"):
        checkpoint_step(last)


def test_a_pickle_is_refused_and_does_not_run(last, tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"global_step": 7, "payload": Payload()}, last)
    with pytest.raises(ValueError, match="Weights only load failed"):
        checkpoint_step(last)
    assert not (tmp_path / "ran").exists()


def test_the_one_before_stays(last):
    CheckpointFiles().save_checkpoint({"global_step": 9}, last)
    assert checkpoint_step(last) == 9
    assert checkpoint_step(last.with_name("before_last.ckpt")) == 7
    assert sorted(path.name for path in last.parent.iterdir()) == ["before_last.ckpt", "last.ckpt"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_where_none_can_be_written_the_others_stay(last, number, monkeypatch):
    before = last.read_bytes()

    def fail(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(ExperimentError, match=f"could not be written: {os.strerror(number)}; the checkpoints before"):
        CheckpointFiles().save_checkpoint({"global_step": 9}, last)
    assert last.read_bytes() == before
    assert [path.name for path in last.parent.iterdir()] == ["last.ckpt"]


def test_a_disk_that_is_full_when_the_file_is_to_be_on_it_leaves_the_others(last, monkeypatch):
    before = last.read_bytes()

    def fail(opened):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ExperimentError, match=f"could not be written: {os.strerror(errno.ENOSPC)}"):
        CheckpointFiles().save_checkpoint({"global_step": 9}, last)
    assert last.read_bytes() == before
    assert [path.name for path in last.parent.iterdir()] == ["last.ckpt"]


def test_a_damaged_one_takes_no_whole_ones_place(last):
    before_last = last.with_name("before_last.ckpt")
    CheckpointFiles().save_checkpoint({"global_step": 9}, last)
    last.write_bytes(last.read_bytes()[:100])
    files = CheckpointFiles()
    assert files.load_checkpoint(before_last, weights_only=True)["global_step"] == 7
    files.save_checkpoint({"global_step": 8}, last.with_name("step=8.ckpt"))
    files.save_checkpoint({"global_step": 8}, last)
    assert (checkpoint_step(before_last), checkpoint_step(last)) == (7, 8)
    files.save_checkpoint({"global_step": 9}, last)
    assert (checkpoint_step(before_last), checkpoint_step(last)) == (8, 9)
