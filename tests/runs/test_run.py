"""A run from start to end.

The tests check what MLflow shows of it, how it is opened again and closed, and what stays on disk.
"""

import dataclasses
import errno
import json
import os
import re
import shutil
import time
from contextlib import contextmanager

import pytest
from mlflow import MlflowClient

from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError
from attnlab.runs.delivery import deliver
from attnlab.runs.run import InactiveRun, Run
from attnlab.runs.run_folder import read_state
from attnlab.runs.tracking import NoTracking
from attnlab.training.spool import SPOOL_NAME, MetricSpool

NOBODY = "http://127.0.0.1:9"


def measure(point, loss=1.0, step=1):
    MetricSpool(point / SPOOL_NAME).append({"loss": loss}, step)


def test_run_shows_its_config_and_its_origin(tracking, runs, point, record, client):
    with tracking().start(runs, point, record) as run:
        assert client.get_run(run.run_id).info.status == "RUNNING"
    found = client.get_run(run.run_id)

    assert found.info.status == "FINISHED"
    assert found.info.run_name == readable_name(record.config)
    params = found.data.params
    assert params["data.source_locales"] == '["de_DE", "ja_JP"]'
    assert (params["attention"], params["data"], params["search"]) == ("bahdanau", "dates", "beam")
    tags = found.data.tags
    assert (tags["identity"], tags["data_hash"]) == ("0123456789abcdef", "d" * 64)
    assert re.fullmatch(
        r"[0-9a-f]{40}|none: attnlab [\d.]+ \(no git checkout\)", tags["git_revision"]
    )
    assert tags["git_dirty"] in ("true", "false", "unknown")
    assert re.fullmatch(r"[0-9a-f]{64}", tags["config_hash"])
    assert {
        "host",
        "platform",
        "version.python",
        "version.torch",
        "version.pytorch-lightning",
    } <= set(tags)
    (dataset,) = found.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("dates", "d" * 16)
    assert json.loads(dataset.dataset.profile) == {"train": 80}


def test_same_experiment_opens_its_run_again_and_keeps_its_params(
    tracking, runs, point, record, client
):
    with tracking().start(runs, point, record) as first:
        pass
    wider = dict(record.config) | {
        "search": {"_target_": "attnlab.search.beam.BeamSearch", "beam_size": 10}
    }
    later = dataclasses.replace(record, config=wider, tags={"stage": "evaluate"})
    with tracking().start(runs, point, later) as second:
        second.log_metrics({"test/bleu": 31.5}, step=200)
        second.log_metrics({"test/bleu": 31.5}, step=200)

    assert second.run_id == first.run_id
    found = client.get_run(first.run_id)
    assert found.data.params["search.beam_size"] == "5"
    assert found.data.tags["stage"] == "evaluate"
    assert found.info.end_time == first.state.ended
    assert len(client.get_metric_history(first.run_id, "test/bleu")) == 1
    assert len(found.inputs.dataset_inputs) == 1


OF_A_SWEEP = {"sweep": "aaaa", "mlflow.parentRunId": "a" * 32}
OF_ANOTHER = {"sweep": "bbbb", "mlflow.parentRunId": "b" * 32}


@pytest.fixture
def started(tracking, runs, point, record, client):
    """Starts the run of the point with these fields of its record; returns it in MLflow."""

    def start(**fields):
        with tracking().start(runs, point, dataclasses.replace(record, **fields)) as run:
            pass
        return client.get_run(run.run_id)

    return start


def test_run_that_was_trained_alone_gets_the_name_and_params_of_the_sweep_that_takes_it(started):
    alone = started()
    in_sweep = started(name="seed 3 · dot", tags=OF_A_SWEEP, params={"training.patience": "null"})
    assert in_sweep.info.run_id == alone.info.run_id
    assert in_sweep.info.run_name == "seed 3 · dot"
    assert in_sweep.data.params["training.patience"] == "null"
    assert in_sweep.data.params.items() >= alone.data.params.items()


def test_run_of_two_sweeps_is_named_by_the_one_that_took_it_last(started, point):
    started(name="seed 3 · dot", title="seed 3 · dot", tags=OF_A_SWEEP)
    last = started(name="dot · seed 3", title="dot · seed 3", tags=OF_ANOTHER)
    assert last.info.run_name == "dot · seed 3"
    assert last.data.tags.items() >= OF_ANOTHER.items()
    assert read_state(point).record.title == "dot · seed 3"


def test_run_of_a_sweep_that_is_started_alone_stays_the_sweeps(started, point):
    in_sweep = started(name="seed 3 · dot", title="seed 3 · dot", tags=OF_A_SWEEP)
    alone = started(title="dot · seed 3")
    assert alone.info.run_name == "seed 3 · dot"
    assert alone.data.tags.items() >= OF_A_SWEEP.items()
    record = read_state(point).record
    assert (record.name, record.title) == ("seed 3 · dot", "seed 3 · dot")
    assert record.tags.items() >= OF_A_SWEEP.items()
    assert in_sweep.info.run_id == alone.info.run_id


def test_finished_run_that_a_repeated_sweep_starts_again_needs_no_tracker(
    tracking, runs, point, record
):
    of_sweep = dataclasses.replace(record, name="seed 3 · dot", tags=OF_A_SWEEP)
    with tracking().start(runs, point, of_sweep):
        pass
    again = tracking().start(runs, point, of_sweep, nothing_new=True)
    assert isinstance(again, InactiveRun)


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
def test_run_closes_itself_and_uploads_up_to_its_checkpoint(
    tracking, runs, point, record, client, error, status, tag
):
    run = tracking().start(runs, point, record)
    measure(point, 1.0, 1)
    run.upload_new(MetricSpool(point / SPOOL_NAME).size())  # as after a checkpoint
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
    assert [
        path for path in runs.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()
    ] == []
    assert "could not reach https://me:***@host" in Run.read(point).state.error


def test_short_run_has_system_metrics(tracking, runs, point, record, client, monkeypatch):
    monkeypatch.setattr("attnlab.runs.connection._SAMPLING_INTERVAL", 0.5)
    for runs_so_far in (1, 2):
        with tracking(system_metrics=True).start(runs, point, record) as run:
            time.sleep(1.2)
        found = client.get_metric_history(run.run_id, "system/cpu_utilization_percentage")
        assert [point.step for point in found] == list(range(len(found)))
        assert len(found) >= runs_so_far


def test_forked_child_uploads_nothing(tracking, runs, point, record, client):
    run = tracking().start(runs, point, record)
    before = (point / "run" / "mlflow.json").read_bytes()
    child = os.fork()
    if child == 0:
        measure(point)
        run.log_metrics({"test/bleu": 1.0}, 1)
        run.upload_new()
        run.finish("FAILED")
        os._exit(0 if (point / "run" / "mlflow.json").read_bytes() == before else 7)
    assert os.waitpid(child, 0)[1] == 0
    assert client.get_run(run.run_id).info.status == "RUNNING"
    run.finish()
    assert client.get_run(run.run_id).data.metrics == {"loss": 1.0}


def test_logged_folder_becomes_artifacts(tracking, runs, point, record, client, tmp_path):
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "metrics.json").write_text("{}")
    with tracking().start(runs, point, record) as run:
        run.log_artifact(tmp_path / "evaluation")
    assert [info.path for info in client.list_artifacts(run.run_id, "evaluation")] == [
        "evaluation/metrics.json"
    ]
    assert (tmp_path / "evaluation" / "metrics.json").exists()
    assert (
        runs / "mlflow-artifacts" / run.run_id / "artifacts" / "evaluation" / "metrics.json"
    ).exists()


def reports(client, run):
    return [info.path for info in client.list_artifacts(run.run_id, "report")]


def test_report_of_a_finished_run_is_logged_once(
    tracking, runs, point, record, client, tmp_path, monkeypatch
):
    with tracking().start(runs, point, record) as run:
        pass
    page = tmp_path / "index.html"
    page.write_text("first")
    tracking().log_report(runs, point, page)
    assert reports(client, run) == ["report/index.html"]
    after = client.get_run(run.run_id).info
    assert (after.status, after.end_time) == ("FINISHED", run.state.ended)

    sent, log_artifact = [], MlflowClient.log_artifact

    def counting(self, run_id, path, folder=None):
        sent.append(folder)
        return log_artifact(self, run_id, path, folder)

    monkeypatch.setattr(MlflowClient, "log_artifact", counting)
    tracking().log_report(runs, point, page)
    assert sent == []
    page.write_text("second")
    tracking().log_report(runs, point, page)
    assert sent == ["report"]


def test_report_of_a_lost_tracker_is_delivered_later(
    tracking, runs, point, record, client, tmp_path, disconnected, capsys
):
    with tracking().start(runs, point, record) as run:
        pass
    page = tmp_path / "index.html"
    page.write_text("page")
    with disconnected():
        tracking().log_report(runs, point, page)
    assert "pipelines/deliver.py uploads it" in capsys.readouterr().err
    assert reports(client, run) == []
    assert deliver(tracking(), runs) == (1, [])
    assert reports(client, run) == ["report/index.html"]
    assert deliver(tracking(), runs) == (0, [])


def test_report_of_a_folder_without_a_run_is_not_logged(tracking, runs, point, tmp_path):
    page = tmp_path / "index.html"
    page.write_text("page")
    tracking().log_report(runs, point, page)
    assert not (point / "run").exists()


def test_lost_tracker_is_one_warning_and_nothing_is_lost(
    tracking, runs, point, record, client, disconnected, capsys
):
    run = tracking().start(runs, point, record)
    with disconnected():
        for step in range(3):
            measure(point, 1.0, step)
            run.upload_new()
    assert capsys.readouterr().err.count("gone; everything is on disk") == 1
    run.finish()
    assert [metric.step for metric in client.get_metric_history(run.run_id, "loss")] == [0, 1, 2]
    assert not run.pending


def test_tracker_that_stays_away_is_asked_again_every_five_minutes(
    tracking, runs, point, record, monkeypatch
):
    run = tracking().start(runs, point, record)
    clock, knocks = [1000.0], []

    def gone(*args):
        knocks.append(clock[0])
        raise OSError("gone")

    monkeypatch.setattr("attnlab.runs.connection.check_reachable", gone)
    monkeypatch.setattr("attnlab.runs.run.time.monotonic", lambda: clock[0])
    for _ in range(100):
        run.upload_new()
        clock[0] += 10
    assert knocks == [1000, 1300, 1600, 1900]


def test_unreachable_tracker_is_refused_unless_a_single_run_may_wait(
    tracking, away, runs, point, record, capsys
):
    with pytest.raises(ExperimentError, match=r"tracking\.uri: http"):
        tracking(uri=NOBODY).start(runs, point, record)
    with pytest.raises(ExperimentError, match=r"tracking\.uri: http"):
        away.for_sweep().start(runs, point, record)
    assert not (point / "run").exists()
    run = away.start(runs, point, record)
    assert run.run_id is None
    assert "everything is on disk" in capsys.readouterr().err


def test_nothing_is_written_without_tracking(tmp_path, record):
    with NoTracking().start(tmp_path / "runs", tmp_path / "point", record) as run:
        run.log_metrics({"test/bleu": 1.0}, 1)
        run.log_artifact(tmp_path)
        run.change(result="x")
        run.upload_new()
    assert isinstance(run, InactiveRun)
    assert run.run_id is None
    assert list(tmp_path.iterdir()) == []


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
def test_error_is_reported_when_the_run_folder_has_vanished(
    error, any_tracking, runs, point, record, capsys
):
    run = any_tracking.start(runs, point, record)
    capsys.readouterr()
    shutil.rmtree(point)
    with pytest.raises(type(error)) as raised, run:
        raise error
    assert raised.value is error
    assert "deliver.py" not in capsys.readouterr().err
    assert not point.exists()


@pytest.mark.parametrize("error", ENDS)
def test_error_is_reported_on_a_full_disk(
    error, any_tracking, runs, point, record, fill_disk, all_runs, capsys
):
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
    with (
        pytest.raises(
            ExperimentError, match=r"run\.json could not be written: No space .*; make room"
        ),
        run,
    ):
        pass
