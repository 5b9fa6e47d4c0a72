"""Upload of pending runs by pipelines/deliver.py.

It uploads them wherever they lie. The result is the same as if they had been uploaded at once.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from filelock import FileLock, Timeout

from attnlab.data.row_kinds import Pairs
from attnlab.experiment import evaluation
from attnlab.experiment.point import experiment_lock
from attnlab.runs.delivery import deliver
from attnlab.tasks.translation.report.section import TranslationSection
from attnlab.tasks.translation.translator import Translator
from attnlab.training.spool import SPOOL_NAME, MetricSpool

NOBODY = "http://127.0.0.1:9"
SCRIPT = str(Path(__file__).resolve().parents[2] / "pipelines" / "deliver.py")


def main(runs, capsys, *arguments):
    """(exit code, output) of the command."""
    capsys.readouterr()
    code = 0
    try:
        with patch.object(sys, "argv", [SCRIPT, f"paths.runs={runs}", *arguments]):
            runpy.run_path(SCRIPT, run_name="__main__")
    except SystemExit as end:
        code = end.code
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize("ends", ["FINISHED", "FAILED"])
def test_offline_run_is_uploaded_with_its_metrics_status_times_and_artifacts(
    ends, tracking, away, runs, point, record, client, tmp_path
):
    run = away.start(runs, point, record)
    MetricSpool(point / SPOOL_NAME).append({"loss": 0.5}, 10, 1)
    run.upload_new()
    run.log_metrics({"test/bleu": 30.0}, 10)
    run.change(result="a result")
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "metrics.json").write_text("{}")
    run.log_artifact(tmp_path / "evaluation")
    run.finish(ends, None if ends == "FINISHED" else "ExperimentError: it diverged")

    assert deliver(tracking(), runs) == (1, [])
    assert deliver(tracking(), runs) == (0, [])
    (found,) = client.search_runs([client.get_experiment_by_name("attnlab").experiment_id])
    assert found.data.metrics == {"loss": 0.5, "test/bleu": 30.0, "epoch": 1.0}
    assert (found.info.status, found.info.start_time, found.info.end_time) == (
        ends,
        run.state.started,
        run.state.ended,
    )
    assert found.data.tags.get("error") == (
        None if ends == "FINISHED" else "ExperimentError: it diverged"
    )
    assert found.data.tags["identity"] == record.identity
    assert found.data.tags["mlflow.note.content"].startswith(
        "a result\n\n**Data:** dates · train 80 rows · SHA-256 "
    )
    assert found.data.params["attention"] == "bahdanau"
    assert [info.path for info in client.list_artifacts(found.info.run_id, "evaluation")] == [
        "evaluation/metrics.json"
    ]


def test_metrics_logged_offline_to_a_finished_run_are_uploaded_later(
    tracking, away, runs, point, record, all_runs
):
    with tracking().start(runs, point, record):
        pass
    with away.start(runs, point, record) as again:
        again.log_metrics({"loss": 0.5}, 10)
    assert all_runs() == [("FINISHED", None)]
    assert deliver(tracking(), runs) == (1, [])
    assert all_runs() == [("FINISHED", 0.5)]


def test_killed_run_is_left_to_its_own_command(away, runs, point, record, tracking):
    away.start(runs, point, record)
    assert deliver(tracking(), runs) == (0, [])


def test_pending_sweeps_and_evaluations_are_uploaded(trained, runs, all_runs, capsys):
    trained(runs / "sweeps" / "0123456789abcdef", 0.5)
    trained(runs / "points" / "0123" / "evaluations" / "3", 0.25, "FAILED")
    code, printed = main(runs, capsys)
    assert (code, printed.count(": uploaded\n")) == (0, 2)
    assert "2 run(s) uploaded" in printed
    assert all_runs() == [("FAILED", 0.25), ("FINISHED", 0.5)]
    assert "no run is pending" in main(runs, capsys)[1]


def test_refused_run_does_not_hold_up_the_others(trained, runs, all_runs, capsys, monkeypatch):
    from attnlab.runs import upload

    for name in "abc":
        trained(runs / "points" / name)
    real = upload.upload_run

    def refusing(run, connection):
        return "it takes no such run" if run.place.name == "b" else real(run, connection)

    monkeypatch.setattr("attnlab.runs.delivery.upload_run", refusing)
    code, printed = main(runs, capsys)
    assert code == 1
    assert "error: points/b: it takes no such run" in printed
    assert len(all_runs()) == 2


@pytest.mark.parametrize("name", ["run.json", "mlflow.json"])
def test_damaged_file_is_a_sentence_and_does_not_hold_up_the_others(
    name, trained, runs, all_runs, capsys
):
    for each in "ab":
        trained(runs / "points" / each)
    damaged = runs / "points" / "a" / "run" / name
    damaged.write_text("{")
    code, printed = main(runs, capsys)
    assert code == 1
    errors = [line for line in printed.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert f"{damaged} is damaged" in errors[0]
    assert "remove it" in errors[0]
    assert "Traceback" not in printed
    assert all_runs() == [("FINISHED", 0.5)]


def test_unreachable_tracker_is_one_sentence_for_all_runs(trained, runs, capsys):
    for each in "ab":
        trained(runs / "points" / each)
    code, printed = main(runs, capsys, f"tracking.uri={NOBODY}")
    assert (code, printed.count("error: ")) == (1, 1)


@pytest.mark.parametrize(
    ("inside", "ends"), [("", "FINISHED"), ("", None), ("evaluations/0123", "FINISHED")]
)
def test_run_that_another_process_works_on_is_named(inside, ends, trained, runs, point, capsys):
    place = point / inside
    trained(place, ends=ends)
    with FileLock(place / "lock"):
        code, printed = main(runs, capsys)
    assert code == 0
    assert f"{place.relative_to(runs)}: a process still works on it" in printed
    assert "no run is pending" not in printed


@pytest.mark.parametrize("inside", ["", "evaluations/0123"])
def test_evaluation_holds_the_lock_of_the_run_that_it_goes_to(
    inside, experiment, runs, point, record, tmp_path, all_runs, monkeypatch
):
    """The lock keeps other processes from uploading the run meanwhile.

    After a training, the evaluation must not wait for a lock of its own process.
    """
    state = point / inside
    state.mkdir(parents=True, exist_ok=True)
    locked = []

    def evaluating(experiment, model, data, into):
        with pytest.raises(Timeout):
            FileLock(state / "lock").acquire(timeout=0)
        locked.append(state)
        into.mkdir()
        (into / "metrics.json").write_text('{"bleu": 30.0}')

    monkeypatch.setattr(evaluation, "write_evaluation", evaluating)
    monkeypatch.setattr("attnlab.experiment.run_record.command_line", tuple)
    monkeypatch.setattr(evaluation, "run_folder_of_evaluation", lambda *_: state)
    monkeypatch.setattr(evaluation, "config_of_run", lambda *_: record.config)
    monkeypatch.setattr(evaluation, "name_of_run", lambda *_: "a name")
    monkeypatch.setattr(evaluation, "read_facts", lambda _: SimpleNamespace(identity="i", step=1))
    rows = SimpleNamespace(source_text=lambda row: "a text")
    prepared = SimpleNamespace(
        digest="d", folder=tmp_path / "data", sizes={}, split=lambda name: rows
    )
    whole = experiment()
    whole.hardware = SimpleNamespace(repeatable="yes")
    whole.main_metrics = ("bleu",)
    whole.task = SimpleNamespace(
        rows=Pairs,
        predictor=lambda: Translator,
        open_data=lambda _: prepared,
        check_same_tokens=lambda *_: None,
        report_section=TranslationSection,
        view=None,
    )
    whole.metrics = {}
    with experiment_lock(point):
        pass  # trained
    evaluation.evaluate_and_track(
        whole, tmp_path / "model", tmp_path / "data", tmp_path / "evaluation"
    )
    assert locked == [state]
    assert all_runs() == [("FINISHED", None)]
    with FileLock(state / "lock").acquire(timeout=0):
        pass  # released
