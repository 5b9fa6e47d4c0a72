"""A rerun loses nothing of the runs before it: they are closed, uploaded, or archived for pipelines/deliver.py."""

from __future__ import annotations

import os
from threading import Thread

import pytest

from attnlab.errors import ExperimentError
from attnlab.experiment.point import begin_anew, only_one_at_a_time
from attnlab.stages import deliver
from attnlab.sweeps.leader import led
from attnlab.sweeps.record import SweepFolder, SweepRecord
from attnlab.tracking.archive import archive
from attnlab.tracking.settings import NoTracking
from attnlab.training.spool import SPOOL_NAME, MetricSpool

NOBODY = "http://127.0.0.1:9"
AWAY = {"uri": NOBODY, "when_unreachable": "warn"}
SWEEP = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1"], points=0, run_id=None, started=0, quiet=False)


@pytest.fixture
def away(tracking):
    return tracking(**AWAY)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


def test_pending_run_survives_a_rerun(trained, tracking, experiment, runs, point, all_runs, capsys):
    trained(point, 0.5)
    (point / "done.json").write_text("{}")
    (point / "checkpoints").mkdir()
    (point / "model").mkdir()
    begin_anew(experiment(**AWAY), point)
    assert "pipelines/deliver.py uploads it" in capsys.readouterr().err
    assert names(point) == ["archived"]
    assert (next((point / "archived").iterdir()) / "run" / "model").is_dir()
    (next((point / "archived").iterdir()) / "run" / "model").rmdir()
    trained(point, 0.25)
    (point / "done.json").write_text("{}")
    assert deliver.deliver(tracking(), runs) == deliver.Deliveries(uploaded=2)
    assert all_runs() == [("FINISHED", 0.25), ("FINISHED", 0.5)]
    assert not (point / "archived").exists()


def test_pending_run_is_uploaded_by_a_rerun_that_has_its_tracker(trained, experiment, point, all_runs):
    trained(point, 0.5)
    begin_anew(experiment(), point)
    assert all_runs() == [("FINISHED", 0.5)]
    assert names(point) == []


@pytest.mark.parametrize("ends", ["FINISHED", "FAILED"])
def test_uploaded_run_keeps_its_status_and_leaves_the_folder(ends, tracking, experiment, runs, point, record, all_runs):
    MetricSpool(point / SPOOL_NAME).append({"loss": 0.5}, 10, 1)
    run = tracking().start(runs, point, record)
    run.sync()
    run.finish(ends)
    begin_anew(experiment(), point)
    assert all_runs() == [(ends, 0.5)]
    assert names(point) == []


def test_run_without_a_checkpoint_is_used_again(tracking, experiment, runs, point, record, all_runs):
    first = tracking().start(runs, point, record)
    MetricSpool(point / SPOOL_NAME).append({"loss": 0.5}, 10, 1)  # and it is killed
    begin_anew(experiment(), point)
    assert not (point / SPOOL_NAME).exists()
    with tracking().start(runs, point, record) as second:
        pass
    assert second.run_id == first.run_id
    assert all_runs() == [("FINISHED", None)]


def test_killed_run_is_closed_with_all_its_metrics(tracking, experiment, runs, point, record, all_runs, monkeypatch):
    spool = MetricSpool(point / SPOOL_NAME)
    run = tracking().start(runs, point, record)
    spool.append({"loss": 0.5}, 10, 1)
    run.sync(spool.size())
    with monkeypatch.context() as broken:

        def gone(*args):
            raise OSError("gone")

        broken.setattr("attnlab.tracking.connection.knock", gone)
        spool.append({"loss": 0.25}, 20, 1)
        run.sync(spool.size())
    begin_anew(experiment(), point)
    assert all_runs() == [("KILLED", 0.25)]
    assert names(point) == []


@pytest.mark.parametrize("later", ["offline", "untracked"])
def test_killed_run_is_closed_later_when_the_tracker_is_away(
    later, tracking, experiment, runs, point, record, all_runs
):
    run = tracking().start(runs, point, record)
    MetricSpool(point / SPOOL_NAME).append({"loss": 0.5}, 10, 1)
    run.sync()
    assert all_runs() == [("RUNNING", 0.5)]
    again = experiment(**AWAY)
    again.tracking = NoTracking() if later == "untracked" else again.tracking
    begin_anew(again, point)
    assert deliver.deliver(tracking(), runs).uploaded == 1
    assert all_runs() == [("KILLED", 0.5)]


@pytest.mark.parametrize("moves", range(3))
@pytest.mark.parametrize("next_command", ["deliver", "train"])
def test_rerun_killed_while_archiving_loses_nothing(
    moves, next_command, tracking, experiment, runs, point, trained, all_runs, monkeypatch
):
    trained(point, 0.5)
    (point / "run" / "later_metrics.jsonl").write_bytes((point / SPOOL_NAME).read_bytes())
    (point / "done.json").write_text("{}")
    (point / "model").mkdir()
    left, replace = [moves], os.replace

    def killed(old, new):
        if not str(new).endswith(".json"):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
        replace(old, new)

    away = experiment(**AWAY)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        if moves < 2:
            with pytest.raises(KeyboardInterrupt):
                begin_anew(away, point)
        else:
            begin_anew(away, point)
    if next_command == "train":
        begin_anew(away, point)
        assert names(point) == ["archived"]
        trained(point, 0.25)
    for model in point.rglob("model"):
        model.rmdir()  # it is no real one
    assert deliver.deliver(tracking(), runs).problems == []
    assert all_runs() == ([("FINISHED", 0.25)] if next_command == "train" else []) + [("FINISHED", 0.5)]
    assert not any((point / "archived").glob("*/run"))


def test_damaged_metrics_of_an_archived_run_are_not_to_be_trained_again(tracking, trained, runs, point):
    trained(point)
    (point / SPOOL_NAME).write_text("{}\n")
    archive(point)
    (archived,) = (point / "archived").iterdir()
    (problem,) = deliver.deliver(tracking(), runs).problems
    assert problem.endswith(f"remove {archived}, and it is not uploaded")
    assert "rerun" not in problem


def test_rerun_waits_for_an_evaluation_of_the_earlier_model(
    tracking, experiment, runs, point, record, trained, all_runs, capfd
):
    trained(point, 0.5)
    (point / "done.json").write_text("{}")
    place = point / "evaluations" / "0123"

    def begin():
        with only_one_at_a_time(point):
            begin_anew(experiment(**AWAY), point)

    again = Thread(target=begin)
    place.mkdir(parents=True)
    with only_one_at_a_time(place), tracking(**AWAY).start(runs, place, record) as run:
        again.start()
        again.join(1)
        assert again.is_alive()
        assert f"another process is at {place}; waiting for it" in capfd.readouterr().err
        run.log_metrics({"loss": 0.25}, 10)
    again.join(30)
    assert not place.exists()
    assert deliver.deliver(tracking(), runs).uploaded == 2
    assert all_runs() == [("FINISHED", 0.25), ("FINISHED", 0.5)]


# A run that was trained offline, and becomes of it what its evaluation ends with.


@pytest.mark.parametrize("ends", ["FINISHED", None], ids=["ended", "killed at its very end"])
def test_failing_evaluation_uploads_the_training_whole(ends, tracking, runs, point, record, trained, all_runs):
    trained(point, ends=ends)
    (point / "done.json").write_text("{}")
    with pytest.raises(ExperimentError), tracking().start(runs, point, record):
        raise ExperimentError("no memory for the evaluation")
    assert all_runs() == [("FAILED", 0.5)]


def test_stopped_offline_evaluation_leaves_the_training_pending(tracking, away, runs, point, record, trained, all_runs):
    trained(point)
    with pytest.raises(KeyboardInterrupt), away.start(runs, point, record):
        raise KeyboardInterrupt
    assert deliver.deliver(tracking(), runs).uploaded == 1
    assert all_runs() == [("KILLED", 0.5)]


def test_rerun_after_a_killed_evaluation_closes_the_training(
    tracking, away, experiment, runs, point, record, trained, all_runs
):
    trained(point)
    (point / "done.json").write_text("{}")
    away.start(runs, point, record)
    begin_anew(experiment(**AWAY), point)
    assert deliver.deliver(tracking(), runs).uploaded == 1
    assert all_runs() == [("KILLED", 0.5)]
    assert names(point) == []


def test_second_try_that_fails_at_once_keeps_the_safe_offset(tracking, away, runs, point, record, all_runs):
    spool = MetricSpool(point / SPOOL_NAME)
    run = away.start(runs, point, record)
    spool.append({"loss": 0.5}, 10, 1)
    run.sync(spool.size())
    spool.append({"loss": 0.25}, 20, 1)  # behind the last checkpoint
    run.finish("FAILED", "it diverged")
    with pytest.raises(ExperimentError), away.start(runs, point, record):
        raise ExperimentError("no such device")
    assert deliver.deliver(tracking(), runs).uploaded == 1
    assert all_runs() == [("FAILED", 0.5)]


# Sweeps have runs of their own.


def test_pending_sweep_survives_its_rerun(trained, tracking, runs, all_runs):
    folder = SweepFolder(runs / "sweeps" / SWEEP.identity)
    folder.write(SWEEP)
    trained(folder.path, 0.5)
    trained(folder.path / "jobs" / "3", 0.25)
    with led(SWEEP, tracking(), runs, 1, on_this_machine=True, anew=True):
        assert not (folder.path / "jobs").exists()
    assert all_runs() == [("FINISHED", 0.25), ("FINISHED", 0.5), ("FINISHED", None)]


def test_sweep_is_not_cleared_when_its_rerun_is_refused(tracking, runs):
    folder = SweepFolder(runs / "sweeps" / SWEEP.identity)
    folder.write(SWEEP)
    (folder.path / "jobs" / "0").mkdir(parents=True)
    with (
        pytest.raises(ExperimentError, match=r"tracking\.uri"),
        led(SWEEP, tracking(**AWAY), runs, 1, on_this_machine=True, anew=True),
    ):
        pass
    assert (folder.path / "jobs" / "0").is_dir()
    assert folder.read() == SWEEP
