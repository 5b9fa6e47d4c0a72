"""A rerun loses nothing of the runs before it: they are closed and uploaded, or it is refused."""

from __future__ import annotations

from threading import Thread

import pytest

from attnlab.errors import ExperimentError
from attnlab.experiment.point import experiment_lock
from attnlab.experiment.resuming import reset_experiment_folder
from attnlab.locks import VARIABLE
from attnlab.runs.delivery import deliver
from attnlab.runs.sweep_record import SweepRecord
from attnlab.runs.tracking import NoTracking
from attnlab.training.spool import LAST, SPOOL_NAME, MetricSpool

AWAY = {"uri": "http://127.0.0.1:9", "when_unreachable": "warn"}
SWEEP = SweepRecord(
    "0123456789abcdef", "seed", ["seed"], ["seed=1"], points=0, run_id=None, started=0
)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


@pytest.mark.parametrize("later", ["offline", "untracked"])
def test_rerun_that_cannot_upload_a_pending_run_is_refused_until_it_is_delivered(
    later, trained, tracking, experiment, runs, point, all_runs
):
    trained(point, 0.5)
    trained(point / "evaluations" / "0123", 0.25)
    (point / "done.json").write_text("{}")
    again = experiment(**AWAY)
    again.tracking = NoTracking() if later == "untracked" else again.tracking
    with pytest.raises(
        ExperimentError,
        match=r"earlier run in .*run \(.*pipelines/deliver\.py, or remove that folder",
    ):
        reset_experiment_folder(again, point)
    assert names(point) == ["done.json", "evaluations", "run"]
    assert deliver(tracking(), runs) == (2, [])
    reset_experiment_folder(again, point)
    assert names(point) == []
    assert all_runs() == [("FINISHED", 0.25), ("FINISHED", 0.5)]


def test_pending_run_is_uploaded_by_a_rerun_that_has_its_tracker(
    trained, experiment, point, all_runs
):
    trained(point, 0.5)
    reset_experiment_folder(experiment(), point)
    assert all_runs() == [("FINISHED", 0.5)]
    assert names(point) == []


def test_rerun_that_the_tracker_refuses_removes_nothing(tracking, experiment, runs, point, record):
    with tracking().start(runs, point, record) as run:
        run.upload_new(10)
    with pytest.raises(ExperimentError, match=r"tracking\.uri"):
        reset_experiment_folder(experiment(uri=AWAY["uri"]), point)
    assert names(point) == ["run"]


@pytest.mark.parametrize("ends", ["FINISHED", "FAILED"])
def test_uploaded_run_keeps_its_status_and_leaves_the_folder(
    ends, tracking, experiment, runs, point, record, all_runs
):
    MetricSpool(point / SPOOL_NAME).append({"loss": 0.5}, 10, 1)
    run = tracking().start(runs, point, record)
    run.upload_new()
    run.finish(ends)
    reset_experiment_folder(experiment(), point)
    assert all_runs() == [(ends, 0.5)]
    assert names(point) == []


def test_run_without_a_checkpoint_is_used_again(
    tracking, experiment, runs, point, record, all_runs
):
    first = tracking().start(runs, point, record)
    MetricSpool(point / SPOOL_NAME).append({"loss": 0.5}, 10, 1)  # and it is killed
    reset_experiment_folder(experiment(), point)
    assert not (point / SPOOL_NAME).exists()
    with tracking().start(runs, point, record) as second:
        pass
    assert second.run_id == first.run_id
    assert all_runs() == [("FINISHED", None)]


def test_killed_run_is_closed_with_all_its_metrics(
    tracking, experiment, runs, point, record, all_runs, disconnected
):
    spool = MetricSpool(point / SPOOL_NAME)
    run = tracking().start(runs, point, record)
    spool.append({"loss": 0.5}, 10, 1)
    run.upload_new(spool.size())
    with disconnected():
        spool.append({"loss": 0.25}, 20, 1)
        run.upload_new(spool.size())
    reset_experiment_folder(experiment(), point)
    assert all_runs() == [("KILLED", 0.25)]
    assert names(point) == []


@pytest.mark.parametrize("kind", ["flock", "lease"])
def test_rerun_waits_for_an_evaluation_of_the_earlier_model(
    kind, tracking, experiment, runs, point, record, all_runs, capfd, monkeypatch
):
    monkeypatch.setenv(VARIABLE, kind)
    place = point / "evaluations" / "0123"

    def begin():
        with experiment_lock(point):
            reset_experiment_folder(experiment(), point)

    (point / "done.json").write_text("{}")
    again = Thread(target=begin)
    place.mkdir(parents=True)
    with experiment_lock(place), tracking().start(runs, place, record) as run:
        again.start()
        again.join(1)
        assert again.is_alive()
        assert f"another process is at {place}; waiting for it" in capfd.readouterr().err
        run.log_metrics({"loss": 0.25}, 10)
    again.join(30)
    assert not place.exists()
    assert all_runs() == [("FINISHED", 0.25)]


@pytest.mark.parametrize("has_checkpoint", [False, True])
@pytest.mark.parametrize("kind", ["flock", "lease"])
def test_training_from_its_first_step_keeps_the_lock_that_it_holds(
    kind, has_checkpoint, experiment, point, monkeypatch
):
    monkeypatch.setenv(VARIABLE, kind)
    if has_checkpoint:
        (point / "checkpoints").mkdir(parents=True)
        (point / "checkpoints" / LAST).write_bytes(b"of an earlier training")
    with experiment_lock(point):
        before = [path.name for path in point.iterdir() if path.name.startswith("lock")]
        assert before == ["lock" if kind == "flock" else "lock.lease"]
        (point / "left_over").write_text("of a killed process")
        reset_experiment_folder(experiment(), point)
        assert [path.name for path in point.iterdir()] == before


# An offline training ends as its evaluation does.


@pytest.mark.parametrize("ends", ["FINISHED", None], ids=["ended", "killed at its very end"])
def test_failing_evaluation_uploads_the_training_whole(
    ends, tracking, runs, point, record, trained, all_runs
):
    trained(point, ends=ends)
    (point / "done.json").write_text("{}")
    with pytest.raises(ExperimentError), tracking().start(runs, point, record):
        raise ExperimentError("no memory for the evaluation")
    assert all_runs() == [("FAILED", 0.5)]


def test_rerun_after_a_killed_evaluation_closes_the_training(
    away, experiment, runs, point, record, trained, all_runs
):
    trained(point)
    (point / "done.json").write_text("{}")
    away.start(runs, point, record)
    reset_experiment_folder(experiment(), point)
    assert all_runs() == [("KILLED", 0.5)]
    assert names(point) == []


def test_second_try_that_fails_at_once_keeps_the_safe_offset(
    tracking, away, runs, point, record, all_runs
):
    spool = MetricSpool(point / SPOOL_NAME)
    run = away.start(runs, point, record)
    spool.append({"loss": 0.5}, 10, 1)
    run.upload_new(spool.size())
    spool.append({"loss": 0.25}, 20, 1)  # behind the last checkpoint
    run.finish("FAILED", "it diverged")
    with pytest.raises(ExperimentError), away.start(runs, point, record):
        raise ExperimentError("no such device")
    assert deliver(tracking(), runs) == (1, [])
    assert all_runs() == [("FAILED", 0.5)]
