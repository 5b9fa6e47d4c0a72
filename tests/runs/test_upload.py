"""Spools and outbox arrive in MLflow: all of it, once, with its own times."""

import json
import math
import shutil
from unittest.mock import Mock

import pytest
from mlflow import MlflowClient
from PIL import Image

from attnlab.runs.run import Run
from attnlab.runs.upload import upload_run
from attnlab.training.spool import SPOOL_NAME, MetricSpool


@pytest.fixture
def connection(tracking, runs):
    return tracking().connection(runs)


@pytest.fixture
def run(connection, point, record):
    """A run that MLflow knows, of a training that goes on."""
    run = Run.start(point, record)
    assert upload_run(run, connection) is None
    return run


@pytest.fixture
def upload(run, connection):
    def up_to(offset=None):
        run.upload_new(offset)
        assert upload_run(run, connection) is None

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


def test_metrics_go_in_large_batches_with_their_own_times_steps_and_epochs(
    client, run, upload, spool, batches
):
    for step in range(900):
        spool.append(
            {"loss": 1 / (step + 1), "rate": math.nan if step == 3 else 0.1},
            step,
            epoch=step // 100,
        )
    upload()

    assert batches == [1000, 1000, 700]
    records = spool.read()[0]
    losses = client.get_metric_history(run.run_id, "loss")
    assert [(m.timestamp, m.step, m.value) for m in losses] == [
        (r.time, r.step, r.metrics["loss"]) for r in records
    ]
    assert client.get_metric_history(run.run_id, "epoch")[-1].value == 8
    assert math.isnan(client.get_metric_history(run.run_id, "rate")[3].value)


def test_second_sync_sends_only_what_is_new(client, run, upload, spool, point, connection, batches):
    spool.append({"loss": 1.0}, 1)
    upload()
    upload()
    spool.append({"loss": 0.5}, 2)
    assert upload_run(Run.read(point), connection) is None  # by another process
    assert batches == [1, 1]
    assert steps(client, run) == [1, 2]


def test_sync_after_a_kill_makes_no_doubles(client, run, upload, spool, point, connection, batches):
    before = (point / "run" / "mlflow.json").read_bytes()
    spool.append({"loss": 1.0}, 1)
    upload()
    (point / "run" / "mlflow.json").write_bytes(before)  # killed before the upload was noted
    assert upload_run(Run.read(point), connection) is None
    assert batches == [1, 1]
    assert steps(client, run) == [1]


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


def test_upload_continues_from_the_note_of_an_earlier_version(
    client, run, upload, spool, point, connection
):
    spool.append({"loss": 1.0}, 1)
    upload()
    noted = json.loads((point / "run" / "mlflow.json").read_text())
    noted["spools"]["metrics.jsonl"] |= {"offset": spool.size(), "fingerprint": "0123456789abcdef"}
    (point / "run" / "mlflow.json").write_text(json.dumps(noted))

    spool.append({"loss": 0.5}, 2)
    Run.read(point).change(safe_offset=None)
    assert upload_run(Run.read(point), connection) is None
    assert steps(client, run) == [1, 2]


def test_test_metrics_stand_at_step_0_and_the_step_of_their_model_is_a_tag(client, run, upload):
    run.log_metrics({"test/bleu": 31.5, "time/minutes": 2.0}, step=200)
    upload()
    upload()
    assert steps(client, run, "test/bleu") == [0]
    assert steps(client, run, "system/minutes") == [200]
    assert client.get_run(run.run_id).data.tags["model_step"] == "200"


def test_costs_stand_behind_what_is_learned(client, run, upload, spool):
    spool.append({"speed/sentences": 64.0, "time/training_cpu_seconds": 1.5, "train/nll": 2.0}, 1)
    upload()
    assert set(client.get_run(run.run_id).data.metrics) == {
        "system/sentences",
        "system/training_cpu_seconds",
        "train/nll",
    }


def test_run_of_an_earlier_version_keeps_the_names_and_steps_of_its_metrics(
    client, run, upload, point, connection
):
    noted = json.loads((point / "run" / "mlflow.json").read_text())
    del noted["layout"]
    (point / "run" / "mlflow.json").write_text(json.dumps(noted))
    earlier = Run.read(point)
    earlier.log_metrics({"test/bleu": 31.5, "time/minutes": 2.0}, step=200)
    assert upload_run(earlier, connection) is None
    # At step 0 a value that is measured again would stand behind the one at step 200.
    assert steps(client, run, "test/bleu") == [200]
    assert steps(client, run, "time/minutes") == [200]


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
    assert {info.path for info in client.list_artifacts(run.run_id)} == {
        "attention",
        "config.yaml",
        "note.txt",
    }
    assert [info.path for info in client.list_artifacts(run.run_id, "attention/step_000200")] == [
        "attention/step_000200/a.html"
    ]
    left = [path.name for path in outbox.rglob("*") if path.is_file()]
    assert left == ["b.html"]
    assert not run.has_outbox  # a killed process left it, and nobody will finish it


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "picture.png"
    Image.new("RGB", (4, 3), "red").save(path)
    return path


def images(client, run):
    """(key, step) of each picture in MLflow, as its pages read them from the names."""
    found = [info.path for info in client.list_artifacts(run.run_id, "images")]
    parts = [path.removeprefix("images/").split("+") for path in found if path.endswith(".png")]
    return sorted((each[0].replace("~", "/"), int(each[2])) for each in parts)


def test_pictures_of_a_validation_are_images_by_key_and_step(client, run, upload, picture):
    for step in (0, 200):
        folder = run.folder / "outbox" / "attention" / f"step_{step:06d}"
        folder.mkdir(parents=True)
        shutil.copy(picture, folder / "my picture: 1.png")
        (folder / "attention.html").write_text("page")
    upload()
    key = "validation/attention/my picture_ 1"
    assert images(client, run) == [(key, 0), (key, 200)]
    assert client.get_run(run.run_id).data.tags["mlflow.loggedImages"] == "True"
    (page,) = client.list_artifacts(run.run_id, "attention/step_000200")
    assert page.path == "attention/step_000200/attention.html"


def test_same_image_is_logged_once_and_a_newer_one_beside_it(client, run, upload, picture):
    def log(time):
        run.log_images("test/attention", time, lambda folder: shutil.copy(picture, folder))
        upload()

    log(1_700_000_000.0)
    log(1_700_000_000.0)
    assert images(client, run) == [("test/attention/picture", 0)]
    log(1_700_000_001.0)
    assert images(client, run) == [("test/attention/picture", 0)] * 2


def test_failing_upload_of_files_leaves_the_metrics_and_the_status_in_mlflow(
    client, run, connection, spool, monkeypatch
):
    spool.append({"loss": 1.0}, 1)
    (run.folder / "outbox").mkdir()
    (run.folder / "outbox" / "note.txt").write_text("x")
    run.finish()
    with monkeypatch.context() as broken:
        broken.setattr(
            MlflowClient, "log_artifact", Mock(side_effect=OSError("No space left on device"))
        )
        assert "No space left on device" in upload_run(run, connection)
    assert (client.get_run(run.run_id).info.status, steps(client, run)) == ("FINISHED", [1])
    assert run.pending
    assert upload_run(run, connection) is None
    assert not run.pending


def test_damaged_metrics_are_the_reason_of_a_failing_upload(run, connection, spool):
    spool.path.write_text("{}\n")
    run.upload_new(None)
    assert "metrics.jsonl is damaged" in upload_run(run, connection)
