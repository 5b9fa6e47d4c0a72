"""What ends a run is what is told of it, also where the record of the end can be written no more."""

from __future__ import annotations

import errno
import json
import shutil
from contextlib import contextmanager

import pytest

from attnlab.errors import ExperimentError
from attnlab.stages import deliver
from attnlab.tracking.kept_run import read
from attnlab.tracking.set_aside import set_aside
from attnlab.training.spool import MetricSpool

NOBODY = "http://127.0.0.1:9"


@pytest.fixture(params=[None, NOBODY], ids=["tracked", "tracker away"])
def any_tracking(request, tracking):
    return tracking(uri=request.param, when_unreachable="warn")


@pytest.fixture
def full_disk(monkeypatch):
    """Fills the disk up when it is called."""

    @contextmanager
    def no_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")
        yield

    def fill():
        for module in ("kept_run", "delivery", "outbox"):
            monkeypatch.setattr(f"attnlab.tracking.{module}.atomic_file", no_file)

    return fill


@pytest.mark.parametrize("error", [ExperimentError("the checkpoint could not be written"), KeyboardInterrupt()])
def test_a_folder_that_vanishes(error, any_tracking, runs, point, record, capsys):
    run = any_tracking.start(runs, point, record)
    shutil.rmtree(point)
    with pytest.raises(type(error)) as raised, run:
        raise error
    assert raised.value is error
    assert "deliver.py tells it later" not in capsys.readouterr().err
    assert not (point / "tracked.json").exists()


@pytest.mark.parametrize("error", [ExperimentError("the checkpoint could not be written"), KeyboardInterrupt()])
def test_a_disk_that_is_full(error, any_tracking, runs, point, record, full_disk, all_runs, capsys):
    run = any_tracking.start(runs, point, record)
    MetricSpool(point / "metrics.jsonl").append({"loss": 0.5}, 10, 1)
    full_disk()
    with pytest.raises(type(error)) as raised, run:
        raise error
    assert raised.value is error
    assert "tracked.json could not be written: No space left on device" in capsys.readouterr().err
    if run.run_id is not None:
        assert all_runs() == [("FAILED" if isinstance(error, ExperimentError) else "KILLED", None)]


def test_a_disk_that_is_full_at_a_good_end_is_a_sentence(any_tracking, runs, point, record, full_disk):
    run = any_tracking.start(runs, point, record)
    full_disk()
    with pytest.raises(ExperimentError, match=r"tracked\.json could not be written: No space .*; make room"), run:
        pass


def test_damaged_metrics_hide_nothing(tracking, runs, point, record, all_runs, capsys):
    run = tracking().start(runs, point, record)
    (point / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(ExperimentError, match=r"metrics\.jsonl is damaged"):
        run.deliver()
    with pytest.raises(ExperimentError, match="it diverged"), run:
        raise ExperimentError("it diverged")
    assert "metrics.jsonl is damaged" in capsys.readouterr().err
    assert all_runs() == [("FAILED", None)]
    assert not read(point).told


def test_damaged_metrics_are_the_sentence_of_their_run(tracking, trained, runs, all_runs):
    for name in "ab":
        trained(runs / "points" / name)
    (runs / "points" / "a" / "metrics.jsonl").write_text("{}\n")
    made = deliver.deliver(tracking(), runs)
    assert made.told == 1
    (problem,) = made.problems
    assert problem.startswith("points/a: ")
    assert "metrics.jsonl is damaged" in problem
    assert all_runs() == [("FINISHED", 0.5), ("FINISHED", None)]


def test_damaged_metrics_that_were_set_aside_are_not_told_to_be_trained_again(tracking, trained, runs, point):
    trained(point)
    (point / "metrics.jsonl").write_text("{}\n")
    set_aside(point)
    (aside,) = (point / "set_aside").iterdir()
    (problem,) = deliver.deliver(tracking(), runs).problems
    assert problem.endswith(f"remove {aside}, and it is told no more")
    assert "rerun" not in problem


def test_a_damaged_list_of_heat_maps_keeps_nothing_back(tracking, trained, runs, point, all_runs, capsys):
    trained(point)
    (point / "heat_maps.json").write_text("{")
    assert deliver.deliver(tracking(), runs).told == 1
    assert "heat_maps.json is damaged" in capsys.readouterr().err
    assert all_runs() == [("FINISHED", 0.5)]


@pytest.mark.parametrize(
    ("field", "value"),
    [("up_to", "x"), ("started", "y"), ("status", "DONE"), ("told", []), ("record", {}), ("note", 3)],
)
def test_a_record_with_a_field_of_another_type_is_damaged(field, value, trained, point):
    trained(point)
    fields = json.loads((point / "tracked.json").read_text())
    (point / "tracked.json").write_text(json.dumps(fields | {field: value}))
    with pytest.raises(ExperimentError, match=rf"tracked\.json is damaged \({field}.*\); remove it"):
        read(point)
