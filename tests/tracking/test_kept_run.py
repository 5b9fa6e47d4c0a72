"""What a tracker was not told is kept, and delivered later as if it had been told at once."""

from __future__ import annotations

import json
import socket
from itertools import pairwise

import pytest
from mlflow import MlflowClient

from attnlab.errors import ExperimentError
from attnlab.tracking.kept_run import kept_folders, places, read
from attnlab.tracking.past_run import tell
from attnlab.training.spool import MetricSpool


@pytest.fixture
def nobody():
    """The address of a server that is not there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def client(runs):
    return MlflowClient(tracking_uri=f"sqlite:///{runs}/mlflow.db")


def untold(runs):
    """The folders whose runs wait, and what they wait with."""
    kept = [(folder, read(folder)) for place in places(runs) for folder in kept_folders(place)]
    return [(folder, run) for folder, run in kept if run.waits]


def train(run, point, tmp_path):
    """What a training does with its run."""
    MetricSpool(point / "metrics.jsonl").append({"loss": 0.5}, 10, 1)
    run.deliver()
    run.log_metrics({"test/bleu": 30.0}, 10)
    (tmp_path / "metrics.json").write_text("{}")
    run.log_artifact(tmp_path / "metrics.json", "evaluation")


def test_a_tracker_that_is_not_there_is_an_error_unless_it_may_wait(tracking, runs, point, record, nobody, capsys):
    with pytest.raises(ExperimentError, match=r"tracking\.uri: http"):
        tracking(uri=nobody).start(runs, point, record)
    run = tracking(uri=nobody, when_unreachable="warn").start(runs, point, record)
    assert run.run_id is None
    assert "it goes on without, and what it finds is kept on disk" in capsys.readouterr().err


def test_a_sweep_is_refused_in_any_case(tracking, runs, point, record, nobody):
    with pytest.raises(ExperimentError, match=r"tracking\.uri: http"):
        tracking(uri=nobody, when_unreachable="warn").start_sweep(runs, point, record)


@pytest.mark.parametrize("ends", ["FINISHED", "FAILED"])
def test_offline_run_after_delivery_has_all_metrics_status_and_artifacts(
    ends, tracking, runs, point, record, nobody, client, tmp_path
):
    run = tracking(uri=nobody, when_unreachable="warn").start(runs, point, record)
    train(run, point, tmp_path)
    run.finish(ends, None if ends == "FINISHED" else "ExperimentError: it diverged")
    ((folder, kept),) = untold(runs)
    assert folder == point

    assert tell(tracking(), runs, folder, kept)
    assert untold(runs) == []
    (found,) = client.search_runs([client.get_experiment_by_name("attnlab").experiment_id])
    assert found.data.metrics == {"loss": 0.5, "test/bleu": 30.0, "epoch": 1.0}
    assert found.info.status == ends
    assert found.info.start_time == kept.started
    assert found.info.end_time == kept.ended
    assert found.data.tags.get("error") == (None if ends == "FINISHED" else "ExperimentError: it diverged")
    assert found.data.tags["identity"] == record.identity
    assert found.data.params["model.attention.size"] == "128"
    assert [info.path for info in client.list_artifacts(found.info.run_id, "evaluation")] == ["evaluation/metrics.json"]


def test_run_disconnected_at_the_end_is_delivered_later(
    tracking, runs, point, record, client, tmp_path, monkeypatch, capsys
):
    run = tracking().start(runs, point, record)
    with monkeypatch.context() as broken:

        def gone(*args):
            raise OSError("gone")

        broken.setattr("attnlab.tracking.tracked_run.knock", gone)
        train(run, point, tmp_path)
        run.finish()
    assert "pipelines/deliver.py" in capsys.readouterr().err
    ((folder, kept),) = untold(runs)
    assert tell(tracking(), runs, folder, kept)
    found = client.get_run(run.run_id)
    assert found.data.metrics == {"loss": 0.5, "test/bleu": 30.0, "epoch": 1.0}
    assert found.info.status == "FINISHED"
    assert untold(runs) == []


def test_a_run_that_told_all_owes_nothing(tracking, runs, point, record, tmp_path):
    with tracking().start(runs, point, record) as run:
        assert read(point).status is None
        train(run, point, tmp_path)
    assert read(point).told
    assert untold(runs) == []


def test_a_run_that_was_killed_waits_for_its_own_command(tracking, runs, point, record, nobody):
    tracking(uri=nobody, when_unreachable="warn").start(runs, point, record)
    assert untold(runs) == []


def test_no_secret_is_kept(tracking, runs, point, record, nobody):
    record.config["tracking"] = {"uri": "http://me:hunter2@host", "api_token": "hunter3"}
    try:
        tracking(uri=nobody, when_unreachable="warn").start(runs, point, record)
    finally:
        del record.config["tracking"]
    kept = (point / "tracked.json").read_text()
    assert json.loads(kept)["record"]["config"]["seed"] == 3
    assert "hunter" not in kept


def test_no_secret_of_an_error_is_kept(tracking, runs, point, record, nobody, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hunter2hunter2")
    address = nobody.replace("//", "//me:hunter3@")
    run = tracking(uri=address, when_unreachable="warn").start(runs, point, record)
    run.finish("FAILED", "OSError: https://me:hunter4@host said no to hunter2hunter2, as to hunter3")
    assert "said no to" in read(point).error
    assert "hunter" not in (point / "tracked.json").read_text()


def test_a_tracker_that_stays_away_is_asked_less_and_less(tracking, runs, point, record, monkeypatch):
    run = tracking().start(runs, point, record)
    clock, knocks = [1000.0], []

    def gone(*args):
        knocks.append(clock[0])
        raise OSError("gone")

    monkeypatch.setattr("attnlab.tracking.tracked_run.knock", gone)
    monkeypatch.setattr("attnlab.tracking.tracked_run.time.monotonic", lambda: clock[0])
    for _ in range(400):
        run.deliver()
        clock[0] += 10
    waits = [later - earlier for earlier, later in pairwise(knocks)]
    assert waits == [60, 120, 240, 480, 960, 1800][: len(waits)]
    assert len(waits) >= 4
