"""Spool and outbox arrive in MLflow: all of it, once, with its own times."""

import math
import os

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from attnlab.errors import ExperimentError
from attnlab.tracking.database import open_store
from attnlab.tracking.delivery import Delivery, metric_name
from attnlab.tracking.outbox import keep_metrics
from attnlab.tracking.retention import keep_heat_maps
from attnlab.training.spool import MetricSpool


class CountingClient(MlflowClient):
    def __init__(self, uri):
        super().__init__(tracking_uri=uri)
        self.batches = []

    def log_batch(self, run_id, metrics=(), params=(), tags=(), synchronous=None):
        self.batches.append(len(metrics))
        return super().log_batch(run_id, metrics, params, tags, synchronous)


@pytest.fixture
def client(runs):
    return CountingClient(open_store(None, "attnlab", runs).uri)


@pytest.fixture
def run_id(client):
    return client.create_run(client.get_experiment_by_name("attnlab").experiment_id).info.run_id


@pytest.fixture
def delivery(client, run_id, point):
    return Delivery(client, run_id, point)


@pytest.fixture
def spool(point):
    return MetricSpool(point / "metrics.jsonl")


def steps(client, run_id, name):
    return [metric.step for metric in client.get_metric_history(run_id, name)]


def test_metrics_go_in_large_batches_with_their_own_times_steps_and_epochs(client, run_id, delivery, spool):
    for step in range(900):
        spool.append({"loss": 1 / (step + 1), "rate": math.nan if step == 3 else 0.1}, step, epoch=step // 100)
    delivery.metrics(spool)

    assert client.batches == [1000, 1000, 700]
    records = spool.read()[0]
    losses = client.get_metric_history(run_id, "loss")
    assert [(m.timestamp, m.step, m.value) for m in losses] == [(r.time, r.step, r.metrics["loss"]) for r in records]
    assert client.get_metric_history(run_id, "epoch")[-1].value == 8
    assert math.isnan(client.get_metric_history(run_id, "rate")[3].value)


def test_a_second_delivery_sends_only_what_is_new(client, run_id, delivery, spool, point):
    spool.append({"loss": 1.0}, 1)
    delivery.metrics(spool)
    delivery.metrics(spool)
    spool.append({"loss": 0.5}, 2)
    Delivery(client, run_id, point).metrics(spool)
    assert client.batches == [1, 1]
    assert steps(client, run_id, "loss") == [1, 2]


def test_delivering_again_after_a_death_makes_no_doubles(client, run_id, delivery, spool, point):
    spool.append({"loss": 1.0}, 1)
    delivery.metrics(spool)
    (point / "delivered.json").unlink()
    delivery.metrics(spool)
    assert client.batches == [1, 1]
    assert steps(client, run_id, "loss") == [1]


def test_a_delivery_goes_no_further_than_it_is_told(client, run_id, delivery, spool):
    spool.append({"loss": 1.0}, 1)
    checkpoint = spool.size()
    spool.append({"loss": 0.5}, 2)
    delivery.metrics(spool, up_to=checkpoint)
    assert steps(client, run_id, "loss") == [1]
    spool.cut(checkpoint)
    spool.append({"loss": 0.5}, 2)
    delivery.metrics(spool)
    assert steps(client, run_id, "loss") == [1, 2]


def test_metrics_rewritten_after_a_damaged_checkpoint_are_delivered_once(client, run_id, delivery, spool):
    for step in (1, 2, 3):
        spool.append({"loss": 1.0 * step}, step)
    delivery.metrics(spool)
    whole = spool.size()
    spool.cut(whole // 3)
    delivery.metrics(spool)
    for step in (2, 3, 4, 5):
        spool.append({"loss": 1.0 * step}, step)
    delivery.metrics(spool)
    spool.append({"loss": 6.0}, 6)
    delivery.metrics(spool)
    assert steps(client, run_id, "loss") == [1, 2, 3, 4, 5, 6]


def test_another_run_gets_everything(client, run_id, delivery, spool, point):
    spool.append({"loss": 1.0}, 1)
    delivery.metrics(spool)
    other = client.create_run(client.get_run(run_id).info.experiment_id).info.run_id
    Delivery(client, other, point).metrics(spool)
    assert steps(client, other, "loss") == [1]


def test_the_outbox_arrives_under_the_same_paths_and_is_emptied(client, run_id, delivery):
    folder = delivery.outbox / "attention" / "step_000200"
    folder.mkdir(parents=True)
    (folder / "a.html").write_text("한글", encoding="utf-8")
    (delivery.outbox / "note.txt").write_text("x")
    (delivery.outbox / "attention" / ".half").mkdir()
    (delivery.outbox / "attention" / ".half" / "b.html").write_text("unfinished")

    delivery.artifacts()
    delivery.artifacts()
    assert [info.path for info in client.list_artifacts(run_id)] == ["attention", "note.txt"]
    assert [info.path for info in client.list_artifacts(run_id, "attention/step_000200")] == [
        "attention/step_000200/a.html"
    ]
    left = [path.name for path in delivery.outbox.rglob("*") if path.is_file()]
    assert left == ["b.html"]


def test_names_that_mlflow_refuses_are_made_acceptable(client, run_id):
    for name in ["validation/free_running/bleu", "a?b", "/x/", "..", "ä ö"]:
        client.log_batch(run_id, [Metric(metric_name(name), 1.0, 1, os.getpid())])
    assert metric_name("validation/free_running/bleu") == "validation/free_running/bleu"


def test_a_tracker_that_deletes_nothing_is_asked_once(client, run_id, delivery, point, monkeypatch, capsys):
    asked = []

    def refuses(self, artifact_path=None):
        asked.append(artifact_path)
        raise NotImplementedError

    monkeypatch.setattr(LocalArtifactRepository, "delete_artifacts", refuses)
    for step in (1, 2, 3):
        folder = delivery.outbox / "attention" / f"step_{step:06d}"
        folder.mkdir(parents=True)
        (folder / "attention.html").write_text("x")
        keep_heat_maps(point, step, None, newest=1, mode="max")
        delivery.artifacts()
    assert asked == ["attention/step_000001"]
    assert capsys.readouterr().err.count("deletes no artifacts") == 1
    assert len(client.list_artifacts(run_id, "attention")) == 3


@pytest.mark.parametrize("spools", ["[]", '{"metrics.jsonl": 3}', '{"metrics.jsonl": {"offset": "x"}}', "null"])
def test_damaged_delivered_json_is_refused(spools, client, run_id, point):
    point.mkdir(parents=True, exist_ok=True)
    (point / "delivered.json").write_text(f'{{"run_id": "{run_id}", "spools": {spools}}}')
    with pytest.raises(ExperimentError, match=r"delivered\.json is damaged \(spools.*; remove it, and all"):
        Delivery(client, run_id, point)


def test_damaged_metrics_of_an_evaluation_are_told_with_their_own_remedy(point):
    point.mkdir(parents=True, exist_ok=True)
    (point / "later_metrics.jsonl").write_text("{}\n")
    with pytest.raises(ExperimentError, match=r"later_metrics\.jsonl is damaged.*; remove it, and evaluate again"):
        keep_metrics(point, {"loss": 1.0}, 1, None)
