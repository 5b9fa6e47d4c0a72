"""Which checkpoint a training goes on from."""

from __future__ import annotations

import pytest

from attnlab.experiment.run import find_resume_checkpoint
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
