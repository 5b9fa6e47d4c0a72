"""A run from start to end: what MLflow shows of it, how it is opened again and closed, and what stays on disk."""

import dataclasses
import errno
import json
import os
import re
import shutil
import time
from contextlib import contextmanager
from itertools import pairwise

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST

from attnlab.errors import ExperimentError
from attnlab.tracking.run_folder import Run, UntrackedRun
from attnlab.tracking.settings import NoTracking
from attnlab.training.spool import SPOOL_NAME, MetricSpool

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def client(runs):
    return MlflowClient(tracking_uri=f"sqlite:///{runs}/mlflow.db")


@pytest.fixture
def away(tracking):
    """The settings of a training whose tracker is away."""
    return tracking(uri=NOBODY, when_unreachable="warn")


@pytest.fixture
def disconnected(monkeypatch):
    """Within it the tracker is away."""

    @contextmanager
    def lost():
        def gone(*args):
            raise OSError("gone")

        with monkeypatch.context() as broken:
            broken.setattr("attnlab.tracking.connection.knock", gone)
            yield

    return lost


def measure(point, loss=1.0, step=1):
    MetricSpool(point / SPOOL_NAME).append({"loss": loss}, step)


def test_run_shows_its_config_and_its_origin(tracking, runs, point, record, client):
    with tracking().start(runs, point, record) as run:
        assert client.get_run(run.run_id).info.status == "RUNNING"
    found = client.get_run(run.run_id)

    assert found.info.status == "FINISHED"
    assert found.info.run_name == "bahdanau · dates · seed 3"
    params = found.data.params
    assert params["model.attention.size"] == "128"
    assert params["data.source_locales"] == '["de_DE", "ja_JP"]'
    assert (params["attention"], params["data"], params["search"]) == ("bahdanau", "dates", "beam")
    tags = found.data.tags
    assert (tags["identity"], tags["data_hash"]) == ("0123456789abcdef", "d" * 64)
    assert re.fullmatch(r"[0-9a-f]{40}|none: not a git checkout", tags["git_revision"])
    assert tags["git_dirty"] in ("true", "false", "unknown")
    assert re.fullmatch(r"[0-9a-f]{64}", tags["config_hash"])
    assert {"host", "platform", "threads", "version.python", "version.torch", "version.pytorch-lightning"} <= set(tags)
    (dataset,) = found.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("dates", "d" * 16)
    assert json.loads(dataset.dataset.profile) == {"train": 80}


def test_same_experiment_opens_its_run_again_and_keeps_its_params(tracking, runs, point, record, client):
    with tracking().start(runs, point, record) as first:
        pass
    wider = dict(record.config) | {"search": {"_target_": "attnlab.search.beam.BeamSearch", "beam_size": 10}}
    later = dataclasses.replace(record, config=wider, tags={"stage": "evaluate"})
    with tracking().start(runs, point, later) as second:
        second.log_metrics({"test/bleu": 31.5}, step=200)
        second.log_metrics({"test/bleu": 31.5}, step=200)

    assert second.run_id == first.run_id
    found = client.get_run(first.run_id)
    assert found.data.params["search.beam_size"] == "5"
    assert json.loads(found.data.tags["changed_params"]) == {"search.beam_size": "10"}
    assert found.data.tags["stage"] == "evaluate"
    assert len(client.get_metric_history(first.run_id, "test/bleu")) == 1
    assert len(found.inputs.dataset_inputs) == 1


def test_run_opened_again_without_news_keeps_its_end(tracking, runs, point, record, client):
    ends = []
    for value in (1.0, 1.0, 2.0):
        with tracking().start(runs, point, record) as run:
            run.log_metrics({"test/bleu": value}, step=200)
        ends.append(client.get_run(run.run_id).info.end_time)
    assert ends[0] == ends[1] < ends[2]


def test_deleted_run_is_uploaded_again_with_all_its_metrics(tracking, runs, point, record, client):
    measure(point)
    with tracking().start(runs, point, record) as first:
        pass
    client.delete_run(first.run_id)
    with tracking().start(runs, point, record) as second:
        pass
    fields = json.loads((point / "run" / "mlflow.json").read_text())
    (point / "run" / "mlflow.json").write_text(json.dumps(fields | {"run_id": "f" * 32}))
    with tracking(run_name="mine").start(runs, point, record) as third:
        pass
    assert len({first.run_id, second.run_id, third.run_id}) == 3
    assert client.get_run(third.run_id).info.run_name == "mine"
    assert client.get_run(third.run_id).data.metrics == {"loss": 1.0}


def test_failed_job_is_adopted_by_its_experiment(tracking, runs, point, record, client):
    with tracking().start(runs, runs / "sweeps" / "x" / "jobs" / "1", record) as failed:
        failed.finish("FAILED", "no memory")
    record = dataclasses.replace(record, adopt=failed.run_id)
    with tracking().start(runs, point, record) as run:
        pass
    found = client.get_run(run.run_id)
    assert run.run_id == failed.run_id
    assert (found.info.status, found.data.tags.get("error")) == ("FINISHED", None)


@pytest.mark.parametrize(
    ("error", "status", "tag"),
    [
        (ExperimentError("training: the loss is nan"), "FAILED", "ExperimentError: training: the loss is nan"),
        (KeyboardInterrupt(), "KILLED", "KeyboardInterrupt"),
        (SystemExit(143), "KILLED", "SystemExit"),
    ],
)
def test_run_closes_itself_and_uploads_up_to_its_checkpoint(tracking, runs, point, record, client, error, status, tag):
    run = tracking().start(runs, point, record)
    measure(point, 1.0, 1)
    run.sync(MetricSpool(point / SPOOL_NAME).size())  # as after a checkpoint
    measure(point, 2.0, 2)  # written again by the training that resumes from there
    with pytest.raises(type(error)), run:
        raise error
    found = client.get_run(run.run_id)
    assert (found.info.status, found.data.tags["error"]) == (status, tag)
    assert found.data.metrics == {"loss": 1.0}


@pytest.mark.parametrize("uri", [None, NOBODY], ids=["online", "offline"])
def test_password_of_an_address_reaches_neither_disk_nor_mlflow(tracking, runs, point, record, uri):
    config = dict(record.config) | {"tracking": {"uri": "http://me:hunter2@host"}}
    record = dataclasses.replace(record, config=config, tags={"where": "https://me:hunter2@host"})
    tracking = tracking(uri=uri, when_unreachable="warn")
    with pytest.raises(RuntimeError), tracking.start(runs, point, record):
        raise RuntimeError("could not reach https://me:hunter2@host")
    assert [path for path in runs.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()] == []
    assert "could not reach https://me:***@host" in Run.read(point).state.error


@pytest.mark.parametrize("uri", [None, NOBODY], ids=["online", "offline"])
def test_short_run_has_system_metrics(tracking, runs, point, record, uri):
    tracking = tracking(uri=uri, system_metrics=True, when_unreachable="warn")
    for steps in ([0], [0, 1]):
        with tracking.start(runs, point, record):
            time.sleep(2.4)
        records, _ = MetricSpool(point / "run" / "system_metrics.jsonl").read()
        assert [each.step for each in records] == steps
        assert "system/cpu_utilization_percentage" in records[0].metrics


def test_forked_child_uploads_nothing(tracking, runs, point, record, client):
    run = tracking().start(runs, point, record)
    before = (point / "run" / "mlflow.json").read_bytes()
    child = os.fork()
    if child == 0:
        measure(point)
        run.log_metrics({"test/bleu": 1.0}, 1)
        run.sync()
        run.finish("FAILED")
        os._exit(0 if (point / "run" / "mlflow.json").read_bytes() == before else 7)
    assert os.waitpid(child, 0)[1] == 0
    assert client.get_run(run.run_id).info.status == "RUNNING"
    run.finish()
    assert client.get_run(run.run_id).data.metrics == {"loss": 1.0}


def test_files_and_folders_become_artifacts(tracking, runs, point, record, client, tmp_path):
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "metrics.json").write_text("{}")
    with tracking().start(runs, point, record) as run:
        run.log_artifact(tmp_path / "evaluation")
        run.log_artifact(tmp_path / "evaluation" / "metrics.json", "again")
    paths = {info.path for folder in ("evaluation", "again") for info in client.list_artifacts(run.run_id, folder)}
    assert paths == {"evaluation/metrics.json", "again/metrics.json"}
    assert (tmp_path / "evaluation" / "metrics.json").exists()
    assert (runs / "mlflow-artifacts" / run.run_id / "artifacts" / "evaluation" / "metrics.json").exists()


def test_lost_tracker_is_one_warning_and_nothing_is_lost(tracking, runs, point, record, client, disconnected, capsys):
    run = tracking().start(runs, point, record)
    with disconnected():
        for step in range(3):
            measure(point, 1.0, step)
            run.sync()
    assert capsys.readouterr().err.count("gone; everything is on disk") == 1
    run.finish()
    assert [metric.step for metric in client.get_metric_history(run.run_id, "loss")] == [0, 1, 2]
    assert not run.pending


def test_tracker_that_stays_away_is_asked_less_and_less(tracking, runs, point, record, monkeypatch):
    run = tracking().start(runs, point, record)
    clock, knocks = [1000.0], []

    def gone(*args):
        knocks.append(clock[0])
        raise OSError("gone")

    monkeypatch.setattr("attnlab.tracking.connection.knock", gone)
    monkeypatch.setattr("attnlab.tracking.run_folder.time.monotonic", lambda: clock[0])
    for _ in range(400):
        run.sync()
        clock[0] += 10
    waits = [later - earlier for earlier, later in pairwise(knocks)]
    assert waits == [60, 120, 240, 480, 960, 1800][: len(waits)]
    assert len(waits) >= 4


def test_run_that_starts_offline_is_created_by_a_later_sync(tracking, runs, point, record, all_runs, monkeypatch):
    with monkeypatch.context() as broken:

        def gone(**options):
            raise OSError("gone")

        broken.setattr("attnlab.tracking.connection.MlflowClient", gone)
        run = tracking(when_unreachable="warn").start(runs, point, record)
    assert run.run_id is None
    measure(point, 0.5)
    monkeypatch.setattr("attnlab.tracking.run_folder.time.monotonic", lambda: float("inf"))
    run.sync()
    assert all_runs() == [("RUNNING", 0.5)]
    run.finish()
    assert all_runs() == [("FINISHED", 0.5)]


def test_unreachable_tracker_is_refused_unless_the_run_may_wait(tracking, away, runs, point, record, capsys):
    with pytest.raises(ExperimentError, match=r"tracking\.uri: http"):
        tracking(uri=NOBODY).start(runs, point, record)
    assert not (point / "run").exists()
    run = away.start(runs, point, record)
    assert run.run_id is None
    assert "everything is on disk" in capsys.readouterr().err


def test_sweep_is_refused_without_its_tracker(away, runs, point, record):
    with pytest.raises(ExperimentError, match=r"tracking\.uri: http"):
        away.start_sweep(runs, point, record)


def test_nothing_is_written_without_tracking(tmp_path, record):
    with NoTracking().start(tmp_path / "runs", tmp_path / "point", record) as run:
        run.log_metrics({"test/bleu": 1.0}, 1)
        run.log_artifact(tmp_path)
        run.describe("x")
        run.sync()
    assert isinstance(run, UntrackedRun)
    assert run.run_id is None
    assert list(tmp_path.iterdir()) == []


def test_dataset_that_another_run_logs_at_once_is_logged_again(tracking, runs, point, record, monkeypatch, client):
    """As PostgreSQL refuses it, where two processes found it missing."""
    log_inputs, refused = MlflowClient.log_inputs, []

    def at_once(self, run_id, datasets):
        if not refused:
            refused.append(run_id)
            raise MlflowException("duplicate key value violates unique constraint", error_code=BAD_REQUEST)
        return log_inputs(self, run_id, datasets)

    monkeypatch.setattr(MlflowClient, "log_inputs", at_once)
    with tracking().start(runs, point, record) as run:
        (logged,) = client.get_run(run.run_id).inputs.dataset_inputs
    assert refused == [run.run_id]
    assert logged.dataset.digest == record.data_digest[:16]


# What ends a run is what is reported of it, also where the end cannot be written to the disk.


@pytest.fixture(params=[None, NOBODY], ids=["online", "offline"])
def any_tracking(request, tracking):
    return tracking(uri=request.param, when_unreachable="warn")


@pytest.fixture
def fill_disk(monkeypatch):
    @contextmanager
    def no_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")
        yield

    return lambda: monkeypatch.setattr("attnlab.files.atomic_file", no_file)


ENDS = [ExperimentError("the checkpoint could not be written"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ENDS)
def test_error_is_reported_when_the_run_folder_has_vanished(error, any_tracking, runs, point, record, capsys):
    run = any_tracking.start(runs, point, record)
    capsys.readouterr()
    shutil.rmtree(point)
    with pytest.raises(type(error)) as raised, run:
        raise error
    assert raised.value is error
    assert "deliver.py" not in capsys.readouterr().err
    assert not point.exists()


@pytest.mark.parametrize("error", ENDS)
def test_error_is_reported_on_a_full_disk(error, any_tracking, runs, point, record, fill_disk, all_runs, capsys):
    run = any_tracking.start(runs, point, record)
    measure(point, 0.5)
    fill_disk()
    with pytest.raises(type(error)) as raised, run:
        raise error
    assert raised.value is error
    assert "run.json could not be written: No space left on device" in capsys.readouterr().err
    if run.run_id is not None:
        assert all_runs() == [("FAILED" if isinstance(error, ExperimentError) else "KILLED", None)]


def test_full_disk_at_a_good_end_is_a_sentence(any_tracking, runs, point, record, fill_disk):
    run = any_tracking.start(runs, point, record)
    fill_disk()
    with pytest.raises(ExperimentError, match=r"run\.json could not be written: No space .*; make room"), run:
        pass


def test_damaged_metrics_do_not_hide_the_error_of_a_run(tracking, runs, point, record, all_runs, capsys):
    run = tracking().start(runs, point, record)
    (point / SPOOL_NAME).write_text("{}\n")
    with pytest.raises(ExperimentError, match=r"metrics\.jsonl is damaged"):
        run.sync()
    with pytest.raises(ExperimentError, match="it diverged"), run:
        raise ExperimentError("it diverged")
    assert "metrics.jsonl is damaged" in capsys.readouterr().err
    assert all_runs() == [("FAILED", None)]
    assert Run.read(point).pending


@pytest.mark.parametrize(
    ("field", "value"),
    [("safe_offset", "x"), ("started", "y"), ("status", "DONE"), ("record", {}), ("note", 3)],
)
def test_state_with_a_field_of_another_type_is_damaged(field, value, trained, point):
    trained(point)
    fields = json.loads((point / "run" / "run.json").read_text())
    (point / "run" / "run.json").write_text(json.dumps(fields | {field: value}))
    with pytest.raises(ExperimentError, match=rf"run\.json is damaged \({field}.*\); remove it"):
        Run.read(point)
