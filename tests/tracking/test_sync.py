"""Spools and outbox arrive in MLflow: all of it, once, with its own times."""

import math
import os

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from attnlab.errors import ExperimentError
from attnlab.tracking.connection import Connection
from attnlab.tracking.retention import keep_heat_maps
from attnlab.tracking.run_folder import Run
from attnlab.tracking.sync import metric_name, sync
from attnlab.training.spool import SPOOL_NAME, MetricSpool


@pytest.fixture
def connection(runs):
    return Connection(None, "attnlab", runs)


@pytest.fixture
def client(connection):
    return connection.open()


@pytest.fixture
def run(connection, point, record):
    """A run that MLflow knows, of a training that goes on."""
    run = Run.start(point, record)
    assert sync(run, connection) is None
    return run


@pytest.fixture
def upload(run, connection):
    def up_to(offset=None):
        run.sync(offset)
        assert sync(run, connection) is None

    return up_to


@pytest.fixture
def batches(monkeypatch):
    """The number of metrics of each request that has some."""
    sent, log_batch = [], MlflowClient.log_batch

    def counting(self, run_id, metrics=(), params=(), tags=(), synchronous=None):
        sent.extend([len(metrics)] if metrics else [])
        return log_batch(self, run_id, metrics, params, tags, synchronous)

    monkeypatch.setattr(MlflowClient, "log_batch", counting)
    return sent


@pytest.fixture
def spool(point):
    return MetricSpool(point / SPOOL_NAME)


def steps(client, run, name="loss"):
    return [metric.step for metric in client.get_metric_history(run.run_id, name)]


def test_metrics_go_in_large_batches_with_their_own_times_steps_and_epochs(client, run, upload, spool, batches):
    for step in range(900):
        spool.append({"loss": 1 / (step + 1), "rate": math.nan if step == 3 else 0.1}, step, epoch=step // 100)
    upload()

    assert batches == [1000, 1000, 700]
    records = spool.read()[0]
    losses = client.get_metric_history(run.run_id, "loss")
    assert [(m.timestamp, m.step, m.value) for m in losses] == [(r.time, r.step, r.metrics["loss"]) for r in records]
    assert client.get_metric_history(run.run_id, "epoch")[-1].value == 8
    assert math.isnan(client.get_metric_history(run.run_id, "rate")[3].value)


def test_second_sync_sends_only_what_is_new(client, run, upload, spool, point, connection, batches):
    spool.append({"loss": 1.0}, 1)
    upload()
    upload()
    spool.append({"loss": 0.5}, 2)
    assert sync(Run.read(point), connection) is None  # by another process
    assert batches == [1, 1]
    assert steps(client, run) == [1, 2]


def test_sync_after_a_kill_makes_no_doubles(client, run, upload, spool, point, connection, batches):
    before = (point / "run" / "mlflow.json").read_bytes()
    spool.append({"loss": 1.0}, 1)
    upload()
    (point / "run" / "mlflow.json").write_bytes(before)  # killed before the upload was noted
    assert sync(Run.read(point), connection) is None
    assert batches == [1, 1]
    assert steps(client, run) == [1]


def test_sync_stops_at_the_safe_offset(client, run, upload, spool):
    spool.append({"loss": 1.0}, 1)
    checkpoint = spool.size()
    spool.append({"loss": 0.5}, 2)
    upload(checkpoint)
    assert steps(client, run) == [1]
    spool.cut(checkpoint)
    spool.append({"loss": 0.5}, 2)
    upload()
    assert steps(client, run) == [1, 2]


def test_metrics_rewritten_after_a_damaged_checkpoint_are_uploaded_once(client, run, upload, spool):
    for step in (1, 2, 3):
        spool.append({"loss": 1.0 * step}, step)
    upload()
    whole = spool.size()
    spool.cut(whole // 3)
    upload()
    for step in (2, 3, 4, 5):
        spool.append({"loss": 1.0 * step}, step)
    upload()
    spool.append({"loss": 6.0}, 6)
    upload()
    assert steps(client, run) == [1, 2, 3, 4, 5, 6]


def test_outbox_arrives_under_the_same_paths_and_is_emptied(client, run, upload):
    outbox = run.folder / "outbox"
    folder = outbox / "attention" / "step_000200"
    folder.mkdir(parents=True)
    (folder / "a.html").write_text("한글", encoding="utf-8")
    (outbox / "note.txt").write_text("x")
    (outbox / "attention" / ".half").mkdir()
    (outbox / "attention" / ".half" / "b.html").write_text("unfinished")

    upload()
    upload()
    assert {info.path for info in client.list_artifacts(run.run_id)} == {"attention", "config.yaml", "note.txt"}
    assert [info.path for info in client.list_artifacts(run.run_id, "attention/step_000200")] == [
        "attention/step_000200/a.html"
    ]
    left = [path.name for path in outbox.rglob("*") if path.is_file()]
    assert left == ["b.html"]


def test_names_that_mlflow_refuses_are_made_acceptable(client, run):
    for name in ["validation/free_running/bleu", "a?b", "/x/", "..", "ä ö"]:
        client.log_batch(run.run_id, [Metric(metric_name(name), 1.0, 1, os.getpid())])
    assert metric_name("validation/free_running/bleu") == "validation/free_running/bleu"


def test_tracker_that_cannot_delete_is_asked_once(client, run, upload, monkeypatch, capsys):
    asked = []

    def refuses(self, artifact_path=None):
        asked.append(artifact_path)
        raise NotImplementedError

    monkeypatch.setattr(LocalArtifactRepository, "delete_artifacts", refuses)
    for step in (1, 2, 3):
        folder = run.folder / "outbox" / "attention" / f"step_{step:06d}"
        folder.mkdir(parents=True)
        (folder / "attention.html").write_text("x")
        keep_heat_maps(run.folder, step, None, newest=1, mode="max")
        upload()
    assert asked == ["attention/step_000001"]
    assert capsys.readouterr().err.count("cannot delete artifacts") == 1
    assert len(client.list_artifacts(run.run_id, "attention")) == 3


def test_one_failing_part_leaves_the_others_of_an_ended_run(client, run, connection, spool, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    spool.append({"loss": 1.0}, 1)
    (run.folder / "outbox").mkdir()
    (run.folder / "outbox" / "note.txt").write_text("x")
    run.finish()
    with monkeypatch.context() as broken:
        broken.setattr(MlflowClient, "log_artifact", full)
        assert "No space left on device; pictures and files could not be uploaded" in sync(run, connection)
    assert (client.get_run(run.run_id).info.status, steps(client, run)) == ("FINISHED", [1])
    assert run.pending
    assert sync(run, connection) is None
    assert not run.pending


@pytest.mark.parametrize("spools", ["[]", '{"metrics.jsonl": 3}', '{"metrics.jsonl": {"offset": "x"}}', "null"])
def test_damaged_mlflow_json_is_refused_at_the_start(spools, record, run, point):
    fields = f'{{"run_id": "{run.run_id}", "experiment_id": "1", "spools": {spools}}}'
    (point / "run" / "mlflow.json").write_text(fields)
    with pytest.raises(ExperimentError, match=r"mlflow\.json is damaged \(spools.*; remove it, and everything"):
        Run.start(point, record)


def test_damaged_metrics_of_an_evaluation_have_their_own_remedy(run, point):
    (point / "run" / "later_metrics.jsonl").write_text("{}\n")
    with pytest.raises(ExperimentError, match=r"later_metrics\.jsonl is damaged.*; remove it, and evaluate again"):
        run.log_metrics({"loss": 1.0}, 1)
