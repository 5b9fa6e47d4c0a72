"""What waits is moved out of the way whole, wherever the process is killed that moves it."""

from __future__ import annotations

import os
from threading import Thread

import pytest

from attnlab.experiment.point import begin_anew, only_one_at_a_time
from attnlab.stages import deliver
from attnlab.sweeps.leader import led
from attnlab.sweeps.record import SweepFolder, SweepRecord
from attnlab.tracking.set_aside import set_aside

NOBODY = "http://127.0.0.1:9"
SWEEP = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1"], points=0, run_id=None, started=0, quiet=False)


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


def test_an_evaluation_that_goes_on_is_waited_for(tracking, experiment, runs, point, record, trained, all_runs, capfd):
    trained(point, 0.5)
    (point / "done.json").write_text("{}")
    place = point / "evaluations" / "0123"
    away = {"uri": NOBODY, "when_unreachable": "warn"}

    def begin():
        with only_one_at_a_time(point):
            begin_anew(experiment(**away), point, record)

    again = Thread(target=begin)
    place.mkdir(parents=True)
    with only_one_at_a_time(place), tracking(**away).start(runs, place, record) as run:
        again.start()
        again.join(1)
        assert again.is_alive()
        assert f"another process is at {place}; waiting for it" in capfd.readouterr().err
        run.log_metrics({"loss": 0.25}, 10)
    again.join(30)
    assert not place.exists()
    assert deliver.deliver(tracking(), runs).told == 2
    assert all_runs() == [("FINISHED", 0.25), ("FINISHED", 0.5)]


def test_a_sweep_that_goes_on_finishes_the_move_first(tracking, runs, trained, all_runs, monkeypatch):
    """Its new run would else be taken for the old one."""
    folder = SweepFolder(runs / "sweeps" / SWEEP.identity)
    folder.write(SWEEP)
    trained(folder.path, 0.5, "FAILED")
    replace = os.replace

    def killed(old, new):
        if "set_aside" in str(new) and not str(new).endswith("tracked.json"):
            raise KeyboardInterrupt
        replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            set_aside(folder.path)
    with led(SWEEP, tracking(), runs, 1, on_this_machine=True):
        pass
    assert deliver.deliver(tracking(), runs).told == 1
    assert all_runs() == [("FAILED", 0.5), ("FINISHED", None)]
