"""Records on disk."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from attnlab.errors import ExperimentError
from attnlab.sweeps.job import FOLDER_VARIABLE, LEADER_VARIABLE, current_job, running
from attnlab.sweeps.outliving import this_process
from attnlab.sweeps.record import JobRecord, SweepFolder, SweepRecord

SWEEP = SweepRecord(
    "0123456789abcdef", "attention × seed", ["model/attention", "seed"], ["seed=1,2"], 4, "run", 10.0, True
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = SweepFolder(tmp_path / "sweeps" / SWEEP.identity)
    folder.write(SWEEP)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder.path))
    monkeypatch.setenv(LEADER_VARIABLE, this_process())
    return folder


def test_sweep_folder_reads_back_the_written_sweep_and_jobs(folder):
    job = JobRecord(3, "닷 · seed 1", {"seed": "1"}, ["seed=1"], "running", SWEEP.started, 12.0, "/out")
    folder.write_job(job)
    folder.write_job(replace(job, number=10, start_of_sweep=1.0))
    assert folder.read() == SWEEP
    assert [found.number for found in folder.jobs()] == [3, 10]
    assert folder.jobs(SWEEP.started) == [job]


def test_a_job_says_how_it_goes(folder, tmp_path, capfd):
    with running(0, ["model/attention=dot", "seed=2"], tmp_path / "0") as job:
        assert current_job() is job
        assert folder.job(0).status == "running"
        assert job.tags == {"sweep": SWEEP.identity, "mlflow.parentRunId": "run"}
        job.update(identity="abc")
        os.write(1, b"said by the job\n")  # as whatever library; print is pytest's here
    found = folder.job(0)
    assert (found.name, found.status, found.identity) == ("dot · seed 2", "finished", "abc")
    assert found.ended >= found.started
    assert current_job() is None
    os.write(1, b"said behind it\n")
    assert capfd.readouterr().out == "said behind it\n"
    assert (tmp_path / "0" / "output.log").read_text() == "said by the job\n"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(ExperimentError(["one.", "two."]), "one.; two."), (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero")],
)
def test_a_job_that_fails_says_why(folder, tmp_path, error, sentence):
    with pytest.raises(type(error)), running(1, [], tmp_path / "1"):
        raise error
    assert (folder.job(1).status, folder.job(1).error) == ("failed", sentence)


def test_a_run_without_an_experiment_is_handed_to_the_next_try(folder, tmp_path):
    for run_id, identity, adopted in [("a", None, None), ("b", "point", "a"), ("c", None, None)]:
        found = []

        def fails(run_id=run_id, identity=identity, found=found):
            with running(2, ["seed=1"], tmp_path / "2") as job:
                found.append(job.run_to_adopt)
                job.update(run_id=run_id, identity=identity)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        assert found == [adopted]


def test_outside_of_a_sweep_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with running(0, [], tmp_path / "0") as job:
        assert job is None
        assert current_job() is None
    assert not list(tmp_path.iterdir())
