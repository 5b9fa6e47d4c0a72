"""Which checkpoint a training goes on from."""

from __future__ import annotations

import pytest

from attnlab.experiment.resuming import find_resume_checkpoint, newest_checkpoint
from attnlab.training.checkpoints import BEFORE_LAST, LAST, CheckpointFiles


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [((), LAST), ((LAST,), BEFORE_LAST), ((LAST, BEFORE_LAST), None)],
    ids=str,
)
def test_damaged_checkpoint_is_replaced_by_the_one_before(damaged, expected, tmp_path, capsys):
    for step in (4, 8):
        CheckpointFiles().save_checkpoint({"global_step": step}, tmp_path / "checkpoints" / LAST)
    for name in damaged:
        (tmp_path / "checkpoints" / name).write_bytes(b"torn")
    found = find_resume_checkpoint(tmp_path)
    assert (found and found.name) == expected
    assert capsys.readouterr().err.count("is damaged") == len(damaged)
    assert (tmp_path / "checkpoints" / LAST).exists() == (expected != BEFORE_LAST)


def test_other_processes_find_the_same_checkpoint_and_change_nothing(tmp_path, capsys):
    for step in (4, 8):
        CheckpointFiles().save_checkpoint({"global_step": step}, tmp_path / "checkpoints" / LAST)
    (tmp_path / "checkpoints" / LAST).write_bytes(b"torn")
    found = newest_checkpoint(tmp_path)
    assert found.path == tmp_path / "checkpoints" / BEFORE_LAST
    assert found.step == 4
    assert list(found.damage) == [tmp_path / "checkpoints" / LAST]
    assert (tmp_path / "checkpoints" / LAST).exists()
    assert capsys.readouterr().err == ""
    assert find_resume_checkpoint(tmp_path) == found.path
