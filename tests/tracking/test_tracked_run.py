"""A run in MLflow: what it knows of its origin, and how it is started, reopened and closed."""

import dataclasses
import json
import os
import re
import time

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import BAD_REQUEST

from attnlab.errors import ExperimentError
from attnlab.tracking.run import UntrackedRun
from attnlab.tracking.settings import NoTracking
from attnlab.training.spool import MetricSpool


@pytest.fixture
def client(runs):
    return MlflowClient(tracking_uri=f"sqlite:///{runs}/mlflow.db")


def test_a_run_tells_its_config_and_its_origin(tracking, runs, point, record, client):
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
    assert {
        "host",
        "platform",
        "threads",
        "version.python",
        "version.torch",
        "version.pytorch-lightning",
    } <= set(tags)
    (dataset,) = found.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("dates", "d" * 16)
    assert json.loads(dataset.dataset.profile) == {"train": 80}


def test_the_same_experiment_reopens_its_run_and_keeps_what_it_knew(tracking, runs, point, record, client):
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


def test_a_run_that_was_deleted_is_started_anew_with_all_its_metrics(tracking, runs, point, record, client):
    MetricSpool(point / "metrics.jsonl").append({"loss": 1.0}, 1)
    with tracking().start(runs, point, record) as first:
        pass
    client.delete_run(first.run_id)
    with tracking().start(runs, point, record) as second:
        pass
    (point / "mlflow.json").write_text('{"run_id": "ffffffffffffffffffffffffffffffff"}')
    with tracking(run_name="mine").start(runs, point, record) as third:
        pass
    assert len({first.run_id, second.run_id, third.run_id}) == 3
    assert client.get_run(third.run_id).info.run_name == "mine"
    assert client.get_run(third.run_id).data.metrics == {"loss": 1.0}


@pytest.mark.parametrize(
    ("error", "status", "tag"),
    [
        (
            ExperimentError("training: the loss is nan"),
            "FAILED",
            "ExperimentError: training: the loss is nan",
        ),
        (KeyboardInterrupt(), "KILLED", "KeyboardInterrupt"),
        (SystemExit(143), "KILLED", "SystemExit"),
    ],
)
def test_a_run_closes_itself_whatever_happens(tracking, runs, point, record, client, error, status, tag):
    spool = MetricSpool(point / "metrics.jsonl")
    spool.append({"loss": 1.0}, 1)
    run = tracking().start(runs, point, record)
    run.deliver(spool.size())  # as behind a checkpoint
    spool.append({"loss": 2.0}, 2)  # and this is written again by the training that goes on from there
    with pytest.raises(type(error)), run:
        raise error
    found = client.get_run(run.run_id)
    assert (found.info.status, found.data.tags["error"]) == (status, tag)
    assert found.data.metrics == {"loss": 1.0}


def test_secrets_reach_neither_params_nor_tags(tracking, runs, point, record, client):
    config = dict(record.config) | {"tracking": {"uri": "http://me:hunter2@host", "password": "hunter2"}}
    record = dataclasses.replace(record, config=config, tags={"where": "https://me:hunter2@host"})
    with pytest.raises(RuntimeError), tracking().start(runs, point, record) as run:
        raise RuntimeError("could not reach https://me:hunter2@host")
    assert "hunter2" not in str(client.get_run(run.run_id).to_dictionary())


def test_a_short_run_has_system_metrics_too(tracking, runs, point, record, client):
    with tracking(system_metrics=True).start(runs, point, record) as run:
        time.sleep(4.6)
    history = client.get_metric_history(run.run_id, "system/cpu_utilization_percentage")
    assert len(history) == 2


def test_a_forked_child_leaves_mlflow_alone(tracking, runs, point, record, client):
    run = tracking().start(runs, point, record)
    child = os.fork()
    if child == 0:
        MetricSpool(point / "metrics.jsonl").append({"loss": 1.0}, 1)
        run.log_metrics({"test/bleu": 1.0}, 1)
        run.deliver()
        run.finish("FAILED")
        os._exit(7 if (point / "delivered.json").exists() else 0)
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


def test_a_lost_tracker_is_a_warning_and_nothing_is_lost(tracking, runs, point, record, client, monkeypatch, capsys):
    run = tracking().start(runs, point, record)
    spool = MetricSpool(point / "metrics.jsonl")
    with monkeypatch.context() as broken:
        calls = []
        broken.setattr(
            MlflowClient,
            "log_batch",
            lambda *_, **__: calls.append(1) or (_ for _ in ()).throw(OSError("gone")),
        )
        for step in range(3):
            spool.append({"loss": 1.0}, step)
            run.deliver()
    assert len(calls) == 1  # the training does not wait for it at each validation
    assert capsys.readouterr().err.count("gone; metrics and pictures could not be delivered") == 1
    run.finish()
    assert [metric.step for metric in client.get_metric_history(run.run_id, "loss")] == [0, 1, 2]


def test_nothing_is_tracked_where_nothing_shall_be(tmp_path, record):
    with NoTracking().start(tmp_path / "runs", tmp_path / "point", record) as run:
        run.log_metrics({"test/bleu": 1.0}, 1)
        run.log_artifact(tmp_path)
        run.log_model(tmp_path)
        run.deliver()
    assert isinstance(run, UntrackedRun)
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_that_another_run_brings_at_once_is_told_again(tracking, runs, point, record, monkeypatch):
    """As PostgreSQL refuses it, where two processes found it missing."""
    log_inputs, refused = MlflowClient.log_inputs, []

    def at_once(self, run_id, datasets):
        if not refused:
            refused.append(run_id)
            raise MlflowException("duplicate key value violates unique constraint", error_code=BAD_REQUEST)
        return log_inputs(self, run_id, datasets)

    monkeypatch.setattr(MlflowClient, "log_inputs", at_once)
    with tracking().start(runs, point, record) as run:
        (told,) = run._store.client.get_run(run.run_id).inputs.dataset_inputs
    assert refused == [run.run_id]
    assert told.dataset.digest == record.data_digest[:16]
