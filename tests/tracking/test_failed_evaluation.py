"""A training whose tracker was away is told whole, whatever becomes of the evaluation behind it."""

from __future__ import annotations

import pytest

from attnlab.errors import ExperimentError
from attnlab.experiment.point import begin_anew
from attnlab.stages import deliver
from attnlab.tracking.kept_run import read
from attnlab.tracking.settings import NoTracking
from attnlab.training.spool import MetricSpool

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def away(tracking):
    return tracking(uri=NOBODY, when_unreachable="warn")


@pytest.mark.parametrize("ends", ["FINISHED", None], ids=["ended", "killed at its very end"])
def test_it_fails_where_the_tracker_is_back(ends, tracking, runs, point, record, trained, all_runs):
    trained(point, ends=ends)
    (point / "done.json").write_text("{}")
    with pytest.raises(ExperimentError), tracking().start(runs, point, record):
        raise ExperimentError("no memory for the evaluation")
    assert all_runs() == [("FAILED", 0.5)]


def test_it_is_stopped_while_the_tracker_is_away(tracking, away, runs, point, record, trained, all_runs):
    trained(point)
    with pytest.raises(KeyboardInterrupt), away.start(runs, point, record):
        raise KeyboardInterrupt
    assert deliver.deliver(tracking(), runs).told == 1
    assert all_runs() == [("KILLED", 0.5)]


def test_it_is_killed_and_all_is_trained_again(
    tracking, away, experiment, runs, point, record, trained, all_runs, capsys
):
    trained(point)
    (point / "done.json").write_text("{}")
    away.start(runs, point, record)
    begin_anew(experiment(uri=NOBODY, when_unreachable="warn"), point, record)
    assert "pipelines/deliver.py tells it" in capsys.readouterr().err
    assert deliver.deliver(tracking(), runs).told == 1
    assert all_runs() == [("KILLED", 0.5)]
    assert list(point.iterdir()) == [point / "lock"]


def test_it_is_killed_and_all_is_trained_again_without_a_tracker(
    tracking, away, experiment, runs, point, record, trained, all_runs
):
    trained(point)
    (point / "done.json").write_text("{}")
    away.start(runs, point, record)
    off = experiment()
    off.tracking = NoTracking()
    begin_anew(off, point, record)
    assert deliver.deliver(tracking(), runs).told == 1
    assert all_runs() == [("KILLED", 0.5)]


def test_a_try_that_fails_at_once_takes_nothing_back(tracking, away, runs, point, record, all_runs):
    spool = MetricSpool(point / "metrics.jsonl")
    run = away.start(runs, point, record)
    spool.append({"loss": 0.5}, 10, 1)
    run.deliver(spool.size())
    spool.append({"loss": 0.25}, 20, 1)  # behind the last checkpoint
    run.finish("FAILED", "it diverged")
    with pytest.raises(ExperimentError), away.start(runs, point, record):
        raise ExperimentError("no such device")
    assert deliver.deliver(tracking(), runs).told == 1
    assert all_runs() == [("FAILED", 0.5)]


def test_a_killed_training_tells_what_the_tracker_missed_before_it_is_begun_anew(
    tracking, experiment, runs, point, record, all_runs, monkeypatch
):
    spool = MetricSpool(point / "metrics.jsonl")
    run = tracking().start(runs, point, record)
    spool.append({"loss": 0.5}, 10, 1)
    run.deliver(spool.size())
    with monkeypatch.context() as broken:

        def gone(*args):
            raise OSError("gone")

        broken.setattr("attnlab.tracking.tracked_run.knock", gone)
        spool.append({"loss": 0.25}, 20, 1)
        run.deliver(spool.size())
    begin_anew(experiment(), point, record)
    assert all_runs() == [("KILLED", 0.25)]
    assert list(point.iterdir()) == []


@pytest.mark.parametrize("ends", ["FINISHED", "FAILED"])
def test_a_run_that_has_ended_is_not_ended_otherwise(ends, tracking, experiment, runs, point, record, all_runs):
    """As where a process was killed when it had begun to clear the folder."""
    MetricSpool(point / "metrics.jsonl").append({"loss": 0.5}, 10, 1)
    run = tracking().start(runs, point, record)
    run.deliver()
    run.finish(ends)
    begin_anew(experiment(), point, record)
    assert all_runs() == [(ends, 0.5)]
    assert list(point.iterdir()) == []


def test_a_try_to_tell_it_that_fails_leaves_it_its_real_end(tracking, runs, point, record, trained, monkeypatch):
    trained(point)
    ended = read(point).ended
    with monkeypatch.context() as broken:

        def gone(*args, **kwargs):
            raise OSError("gone")

        broken.setattr("attnlab.tracking.delivery.Delivery.metrics", gone)
        broken.setattr("attnlab.tracking.kept_run._now", lambda: ended + 60_000)
        assert deliver.deliver(tracking(), runs).problems
    assert read(point).ended == ended
    assert not read(point).told
