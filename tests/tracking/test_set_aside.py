"""What waits is moved out of the way whole, wherever the process is killed that moves it."""

from __future__ import annotations

import os

import pytest

import deliver
from point import begin_anew, only_one_at_a_time

NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize("moves", range(4))
@pytest.mark.parametrize("next_command", ["deliver", "train"])
def test_killed_after_so_many_moves(
    moves, next_command, tracking, experiment, runs, point, record, trained, all_runs, monkeypatch
):
    trained(point, 0.5)
    (point / "later_metrics.jsonl").write_bytes((point / "metrics.jsonl").read_bytes())
    (point / "done.json").write_text("{}")
    left, replace = [moves], os.replace

    def killed(old, new):
        if "set_aside" in str(new):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
        replace(old, new)

    away = experiment(uri=NOBODY, when_unreachable="warn")
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            begin_anew(away, point, record)
    if next_command == "train":
        with only_one_at_a_time(point):
            begin_anew(away, point, record)
        (point / "lock").unlink()
        assert [path.name for path in point.iterdir()] == ["set_aside"]
        trained(point, 0.25)
    told = deliver.deliver(tracking(), runs)
    assert told.problems == []
    assert all_runs() == ([("FINISHED", 0.25)] if next_command == "train" else []) + [("FINISHED", 0.5)]
    assert not (point / "set_aside").exists()
