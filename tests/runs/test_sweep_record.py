"""Records on disk, and names of points."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict, replace

import pytest

from attnlab.errors import ExperimentError
from attnlab.files import write_json
from attnlab.runs.sweep_job import (
    FOLDER_VARIABLE,
    LEADER_VARIABLE,
    current_job,
    running,
    this_process,
)
from attnlab.runs.sweep_record import (
    JobRecord,
    SweepFolder,
    SweepRecord,
    choices_of,
    name_of,
)

SWEEP = SweepRecord(
    "0123456789abcdef",
    "attention × seed",
    ["model/attention", "seed"],
    ["seed=1,2"],
    4,
    "run",
    10.0,
)


CONFIG = {
    "model": {"attention": {"_target_": "attnlab.model.attention.dot.DotScore"}},
    "data": {"_target_": "attnlab.data.dates.DatesCorpus"},
    "seed": 2,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = SweepFolder(tmp_path / "sweeps" / SWEEP.identity)
    folder.write(SWEEP)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder.path))
    monkeypatch.setenv(LEADER_VARIABLE, this_process())
    return folder


def test_sweep_folder_reads_back_the_written_sweep_and_jobs(folder):
    job = JobRecord(
        3, "닷 · seed 1", {"seed": "1"}, ["seed=1"], "running", SWEEP.started, 12.0, "/out"
    )
    folder.write_job(job)
    folder.write_job(replace(job, number=10, start_of_sweep=1.0))
    assert folder.read() == SWEEP
    assert [found.number for found in folder.jobs()] == [3, 10]
    assert folder.jobs(SWEEP.started) == [job]


def on_disk(folder):
    return json.loads((folder.path / "jobs" / "3.json").read_text())


@pytest.mark.parametrize("place", ["sweeps/0123456789abcdef/3", "mine/3"])
def test_record_of_a_job_inside_the_runs_folder_holds_relative_paths(folder, tmp_path, place):
    output, data = str(tmp_path / place), str(tmp_path / "data" / "abc")
    job = JobRecord(3, "dot", {}, [], "finished", SWEEP.started, 12.0, output, data=data)
    folder.write_job(job)
    assert (on_disk(folder)["output"], on_disk(folder)["data"]) == (place, "data/abc")
    assert folder.jobs() == [job]


def test_record_of_a_job_outside_of_the_runs_folder_holds_an_absolute_path(folder, tmp_path):
    output = str(tmp_path.parent / "elsewhere" / "3")
    folder.write_job(JobRecord(3, "dot", {}, [], "finished", SWEEP.started, 12.0, output))
    assert on_disk(folder)["output"] == output == folder.jobs()[0].output


def test_absolute_path_of_an_earlier_version_leads_to_where_the_runs_folder_is_now(
    folder, tmp_path
):
    job = JobRecord(
        3, "dot", {}, [], "finished", SWEEP.started, 12.0, f"/gone/runs/sweeps/{SWEEP.identity}/3"
    )
    write_json(folder.path / "jobs" / "3.json", asdict(job))
    assert folder.jobs()[0].output == str(folder.path / "3")


def test_running_job_writes_its_record_and_its_output(folder, tmp_path, capfd):
    with running(0, ["model/attention=dot", "seed=2"], tmp_path / "0", CONFIG) as job:
        assert current_job() is job
        assert folder.jobs()[0].status == "running"
        assert job.tags == {"sweep": SWEEP.identity, "mlflow.parentRunId": "run"}
        job.update(identity="abc")
        os.write(1, b"said by the job\n")  # as whatever library; print is pytest's here
    (found,) = folder.jobs()
    assert (found.name, found.status, found.identity) == ("dot · seed 2 · dates", "finished", "abc")
    assert found.ended >= found.started
    assert current_job() is None
    os.write(1, b"said behind it\n")
    assert capfd.readouterr().out == "said behind it\n"
    assert (tmp_path / "0" / "output.log").read_text() == "said by the job\n"


def test_job_stopped_by_ctrl_c_shows_its_last_line_on_the_terminal(folder, tmp_path, capfd):
    def stopped_job():
        os.write(2, b"step 4\nCtrl-C: saved at step 5\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), running(0, [], tmp_path / "0", CONFIG):
        stopped_job()
    assert capfd.readouterr().err == "Ctrl-C: saved at step 5\n"


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (KeyboardInterrupt(), "stopped", "stopped by Ctrl-C; the same command goes on"),
        (SystemExit(130), "stopped", "stopped by Ctrl-C; the same command goes on"),
        (SystemExit(143), "stopped", "stopped by SIGTERM; the same command goes on"),
        (SystemExit(1), "failed", "SystemExit: 1"),
        (SystemExit("no"), "failed", "SystemExit: no"),
    ],
)
def test_job_that_a_signal_ends_was_stopped_and_has_not_failed(
    folder, tmp_path, error, status, sentence
):
    with pytest.raises(type(error)), running(1, [], tmp_path / "1", {}):
        raise error
    (found,) = folder.jobs()
    assert (found.status, found.error) == (status, sentence)


def test_points_that_share_the_name_of_their_experiment_get_distinct_names(folder, tmp_path):
    folder.write(replace(SWEEP, varies=["tracking.heat_map_sentences", "training.optimizer.lr"]))
    for number, sentences, rate in (
        (0, 1, 0.1),
        (1, 2, 0.1),
        (2, 2, 0.1 + 1e-12),
        (2, 2, 0.1 + 1e-12),
    ):
        given = [
            f"tracking.heat_map_sentences={sentences}",
            f"training.optimizer.lr={rate}",
        ]
        with running(number, given, tmp_path / str(number), {**CONFIG, "data": None, "seed": 1}):
            pass
    assert [job.name for job in folder.jobs()] == [
        "1 tracking heat map sentences · 0.1 optimizer lr · dot · seed 1",
        "2 tracking heat map sentences · 0.1 optimizer lr · dot · seed 1",
        "2 tracking heat map sentences · 0.1 optimizer lr · dot · seed 1 · point 2",
    ]


def test_points_that_start_together_get_distinct_names_too(folder, tmp_path, monkeypatch):
    """The second one starts and ends between the first one's look at the others and its record."""
    folder.write(SWEEP)
    write_job = SweepFolder.write_job

    def start_another_first(self, job):
        monkeypatch.setattr(SweepFolder, "write_job", write_job)
        with running(1, [], tmp_path / "1", {**CONFIG, "data": None, "seed": 1}):
            pass
        write_job(self, job)

    monkeypatch.setattr(SweepFolder, "write_job", start_another_first)
    with running(0, [], tmp_path / "0", {**CONFIG, "data": None, "seed": 1}):
        pass
    first, second = folder.jobs()
    assert first.name != second.name


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ExperimentError(["one.", "two."]), "one.; two."),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
    ],
)
def test_failing_job_records_its_error(folder, tmp_path, error, sentence):
    with pytest.raises(type(error)), running(1, [], tmp_path / "1", {}):
        raise error
    (found,) = folder.jobs()
    assert (found.status, found.error) == ("failed", sentence)


def test_job_outside_of_a_sweep_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with running(0, [], tmp_path / "0", {}) as job:
        assert job is None
        assert current_job() is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({"model/attention": "bahdanau", "seed": "2"}, "bahdanau · seed 2"),
        ({"model/attention": "none"}, "no attention"),
        ({"search.size": "5"}, "5 search size"),
        (
            {"training.optimizer.lr": "0.00012345678901"},
            "0.000123457 optimizer lr",
        ),
        ({"data.path": "/corpora/multi30k"}, "multi30k"),
        ({"training/teacher_forcing": "constant"}, "constant teacher forcing"),
        ({"training.teacher_forcing.ratio": "1"}, "1 teacher forcing ratio"),
        ({"data/tokenizer@data.source_tokenizer": "bpe"}, "bpe source tokenizer"),
        ({"padding": "pre_post"}, "pre_post"),
        ({"training.monitor": "validation/nll"}, "monitor validation/nll"),
        ({"model.encoder.bidirectional": "false"}, "encoder bidirectional false"),
        ({"data.languages": "[de,ko]"}, "languages [de,ko]"),
        ({}, "as given"),
    ],
)
def test_name_of_a_point_says_what_varies(choices, name):
    assert name_of(choices) == name


def test_choices_of_overrides_are_those_that_vary_without_quotes():
    overrides = ["model/attention=dot", "+training.more='a \\'b\\''", "seed=3", "data.path=x=y"]
    chosen = {"seed": "3", "training.more": "a 'b'", "data.path": "x=y"}
    assert choices_of(overrides, list(chosen)) == chosen


def test_command_that_compares_takes_places_without_the_quotes_of_hydra():
    overrides = ["seed=1,2", "paths.runs='/home/나래/runs'", 'tracking.uri="http://h:5000/?a=b"']
    words = shlex.split(replace(SWEEP, overrides=overrides).compare_command)
    assert words[-2:] == ["paths.runs=/home/나래/runs", "tracking.uri=http://h:5000/?a=b"]
