"""The first process of a sweep."""

from __future__ import annotations

import psutil
import pytest

from attnlab.runs.run import Run
from attnlab.runs.sweep_leader import _is_worker, lead_sweep
from attnlab.runs.sweep_record import JobRecord, SweepFolder, SweepRecord
from attnlab.runs.sweep_settings import JobProcesses
from attnlab.tasks.classification.task import Classification
from attnlab.tasks.translation.task import Translation


@pytest.mark.parametrize(
    ("view", "ending"),
    [
        (Translation.view, "&viewStateShareKey=attnlab-translation"),
        (Classification.view, "&viewStateShareKey=attnlab-classification"),
        (None, "&compareRunsMode=CHART"),  # points of several tasks
    ],
)
def test_start_lines_of_a_sweep_lead_to_the_view_of_its_task(view, ending, tracking, runs, capsys):
    record = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1,2"], 2, None, 0.0)
    with lead_sweep(record, tracking(), runs, JobProcesses("serial", 1), view):
        lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "sweep 0123456789abcdef (seed): 2 points"
    assert lines[1].startswith("MLflow: ")
    assert lines[2].startswith("open http://127.0.0.1:5000/#/experiments/")
    assert lines[2].endswith(ending)


RECORD = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1"], 1, None, 0.0)
COMMAND = "python pipelines/compare.py sweep=0123456789abcdef"


@pytest.fixture
def swept(tracking, runs, client):
    """Leads a sweep with one finished point; returns the description of its run in MLflow."""

    def lead(*, was_trained):
        with lead_sweep(RECORD, tracking(), runs, JobProcesses("serial", 1)) as folder:
            start = folder.read().started
            job = JobRecord(0, "seed 1", {}, [], "finished", start, start, "out", new=was_trained)
            folder.write_job(job)
        return note(client, folder)

    return lead


def note(client, folder):
    """The description of a sweep's run."""
    return client.get_run(folder.read().run_id).data.tags["mlflow.note.content"]


def test_description_of_a_sweep_that_was_not_compared_has_the_command(swept):
    assert COMMAND in swept(was_trained=True)
    assert COMMAND in swept(was_trained=False)


def test_description_of_a_compared_sweep_has_the_answer_until_a_point_is_trained_anew(
    swept, tracking, runs, client
):
    swept(was_trained=True)
    folder = SweepFolder(runs / "sweeps" / RECORD.identity)
    before = client.get_run(folder.read().run_id).info
    tracking().describe_comparison(runs, folder.path, "dot is better.")
    assert note(client, folder).startswith("dot is better.")
    assert COMMAND not in note(client, folder)
    after = client.get_run(folder.read().run_id).info
    assert (after.status, after.end_time) == (before.status, before.end_time)

    assert swept(was_trained=False).startswith("dot is better.")
    assert COMMAND in swept(was_trained=True)


def test_answer_that_mlflow_lacks_waits_on_disk(swept, tracking, runs):
    swept(was_trained=True)
    place = runs / "sweeps" / RECORD.identity
    offline = tracking(uri="http://127.0.0.1:9", when_unreachable="warn")
    offline.describe_comparison(runs, place, "dot is better.")
    run = Run.read(place)
    assert run.state.comparison == "dot is better."
    assert run.pending


@pytest.mark.parametrize("gone", [psutil.NoSuchProcess, psutil.ZombieProcess])
def test_process_that_has_just_died_is_no_worker_to_stop(gone, monkeypatch):
    process = psutil.Process()
    assert _is_worker(process)

    def cmdline(_):
        raise gone(process.pid)

    monkeypatch.setattr(psutil.Process, "cmdline", cmdline)
    assert not _is_worker(process)
