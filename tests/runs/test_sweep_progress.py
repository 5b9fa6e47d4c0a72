"""What a sweep prints: lines while it runs, and the ranking at its end."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

from attnlab.files import write_json
from attnlab.runs.run_folder import DONE
from attnlab.runs.sweep_display import line_of, line_of_point, print_ranking, showing_progress
from attnlab.runs.sweep_record import JobRecord, SweepFolder, as_markdown, ranking
from attnlab.runs.sweep_settings import JobProcesses
from attnlab.tasks.translation.task import Translation


def job(number, status, started, ended=None, new=True):
    return JobRecord(
        number, f"job {number}", {}, [], status, 0.0, started, "", ended=ended, new=new
    )


def test_line_estimates_the_time_left_from_the_jobs_that_trained():
    jobs = [
        job(0, "finished", 0, 100),
        job(1, "finished", 0, 200),
        job(2, "finished", 200, 201, new=False),  # was there before: it says nothing about the time
        job(3, "failed", 200, 205),  # in its first seconds: it says nothing about the time either
        job(4, "running", 300),
    ]
    # Mean 150 s; 6 points are left, one of which has run for 50 s; two workers: (6 * 150 - 50) / 2.
    assert (
        line_of(jobs, 10, 2, now=350.0) == "sweep: 3 of 10 done, 1 running, 1 failed, 0:07:05 left"
    )


def test_line_guesses_no_time_before_a_job_has_ended_and_at_the_end():
    assert (
        line_of([job(0, "running", 0)], 4, 1, now=10.0) == "sweep: 0 of 4 done, 1 running, 0 failed"
    )
    jobs = [job(0, "finished", 0, 10), job(1, "failed", 0, 10)]
    assert line_of(jobs, 2, 1, now=20.0) == "sweep: 1 of 2 done, 0 running, 1 failed"
    jobs.append(job(2, "stopped", 0, 10))
    assert line_of(jobs, 3, 1, now=20.0) == "sweep: 1 of 3 done, 0 running, 1 failed, 1 stopped"


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


def finished(runs, number, name, quality, test, higher_is_better=True, **more):
    """A job with what its training and its evaluation left."""
    output = runs / "sweeps" / "abc" / str(number)
    write_json(output / "metrics.json", test)
    done = {
        "monitor": "validation/free_running/bleu",
        "quality": quality,
        "step": 4,
        "higher_is_better": higher_is_better,
    }
    write_json(runs / "points" / f"point{number}" / DONE, done)
    ended = job(number, "finished", 10.0, 75.0, **more)
    return replace(ended, name=name, output=str(output), identity=f"point{number}")


def test_line_of_a_point_has_its_name_validation_value_and_time(runs):
    trained = finished(runs, 0, "dot · seed 2", 93.2, {})
    assert line_of_point(trained, runs) == "dot · seed 2: validation bleu 93.2, 0:01:05"
    assert line_of_point(replace(trained, new=False), runs) == (
        "dot · seed 2: validation bleu 93.2 (trained before), 0:01:05"
    )
    assert line_of_point(job(1, "failed", 10.0, 13.0), runs) == "job 1: failed, 0:00:03"
    assert line_of_point(job(1, "stopped", 10.0, 13.0), runs) == "job 1: stopped, 0:00:03"


def test_progress_prints_the_place_of_the_output_once_and_a_line_for_each_job(runs, capfd):
    folder = SweepFolder(runs / "sweeps" / "abc")
    with showing_progress(folder, runs, points=2, launcher=JobProcesses("serial", 1), start=0.0):
        for number in (0, 1):
            folder.write_job(replace(job(number, "running", 10.0), output=f"/out/{number}"))
            ended = job(number, "failed", 10.0, 20.0 + number)
            folder.write_job(replace(ended, output=f"/out/{number}"))
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "what the points print: /out/*/output.log"
    assert [line.partition(";")[0] for line in lines[1:]] == [
        "job 0: failed, 0:00:10",
        "job 1: failed, 0:00:11",
    ]
    assert lines[-1].endswith("sweep: 0 of 2 done, 0 running, 2 failed")


def test_progress_reaches_the_terminal_while_a_job_sends_its_output_to_a_file(
    runs, tmp_path, capfd
):
    folder = SweepFolder(runs / "sweeps" / "abc")
    terminal = os.dup(2)
    log = tmp_path / "output.log"
    with log.open("w") as file:
        with showing_progress(
            folder, runs, points=1, launcher=JobProcesses("serial", 1), start=0.0
        ):
            os.dup2(file.fileno(), 2)
            folder.write_job(job(0, "failed", 10.0, 20.0))
        os.dup2(terminal, 2)
    os.close(terminal)
    assert "job 0: failed" in capfd.readouterr().err
    assert not log.read_text()


@pytest.mark.parametrize(("kind", "shows_error"), [("local", True), ("joblib", False)])
def test_progress_shows_the_error_of_a_job_that_cannot_print_it_itself(
    runs, capfd, kind, shows_error
):
    folder = SweepFolder(runs / "sweeps" / "abc")
    with showing_progress(folder, runs, points=1, launcher=JobProcesses(kind, 1), start=0.0):
        folder.write_job(replace(job(0, "failed", 10.0, 20.0), error="too long."))
    assert ("error: job 0: too long." in capfd.readouterr().err) == shows_error


def rows_of(printed):
    """The cells of the rows of a table, without its frame."""
    rows = [line for line in printed.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in re.split("│", row)[1:-1]] for row in rows]


def test_ranking_lists_the_best_point_first_and_names_failed_points_last(runs, capsys):
    jobs = [
        job(0, "failed", 0.0, 1.0),
        finished(runs, 1, "dot", 80.0, {"bleu": 79.0, "aer": 0.25, "ter": 3.0}),
        finished(runs, 2, "general", 90.5, {"bleu": 91.25, "exact_match": 0.5}),
        finished(runs, 3, "concat", 80.0, {"bleu": 78.0}),
        replace(job(4, "finished", 0.0, 1.0), name="unknown"),
    ]
    print_ranking(ranking(jobs, runs), jobs, Translation.main_metrics)
    printed = capsys.readouterr().out
    heads = next(line for line in printed.splitlines() if "point" in line)
    assert [head.strip() for head in heads.strip("┃").split("┃")] == [
        "",
        "point",
        "validation bleu",
        "test bleu",
        "test exact_match",
        "test aer",
    ]
    assert rows_of(printed) == [
        ["1", "general", "90.5", "91.25", "0.5", "–"],
        ["2", "dot", "80", "79", "–", "0.25"],  # dot and concat are equal: by their numbers
        ["3", "concat", "80", "78", "–", "–"],
        ["–", "unknown", "no value", "–", "–", "–"],
        ["–", "job 0", "failed", "–", "–", "–"],
    ]


def test_ranking_by_a_loss_puts_the_smallest_first(runs, capsys):
    jobs = [
        finished(runs, number, name, loss, {}, higher_is_better=False)
        for number, name, loss in ((0, "worse", 2.0), (1, "better", 1.0))
    ]
    print_ranking(ranking(jobs, runs), jobs, Translation.main_metrics)
    assert [row[1] for row in rows_of(capsys.readouterr().out)] == ["better", "worse"]


@pytest.mark.parametrize(
    ("main", "headings"),
    [
        (("tag_accuracy", "own"), ["test tag_accuracy", "test own"]),
        ((), ["test loss", "test own", "test tag_accuracy"]),
        (("bleu",), ["test loss", "test own", "test tag_accuracy"]),
    ],
)
def test_ranking_has_the_main_metrics_or_all_where_no_point_has_them(runs, capsys, main, headings):
    measured = {"loss": 0.5, "own": 3.0, "tag_accuracy": 0.75, "sentences": 20}
    jobs = [finished(runs, 0, "dot", 80.0, measured)]
    print_ranking(ranking(jobs, runs), jobs, main)
    heads = next(line for line in capsys.readouterr().out.splitlines() if "point" in line)
    assert [head.strip() for head in heads.strip("┃").split("┃")][3:] == headings


def test_markdown_of_a_ranking_has_columns_that_only_a_later_point_measured(runs):
    jobs = [finished(runs, 0, "dot", 80.0, {}), finished(runs, 1, "general", 70.0, {"own": 3.0})]
    table = as_markdown(ranking(jobs, runs), ["own"]).splitlines()
    assert table[2:] == [
        "|  | run | validation bleu | test own |",
        "| --- | --- | --- | --- |",
        "| 1 | dot | 80 | – |",
        "| 2 | general | 70 | 3 |",
    ]


def test_markdown_of_a_long_ranking_ends_where_a_description_has_no_more_room(runs):
    jobs = [finished(runs, number, "dot · " * 20, 80.0 - number, {}) for number in range(20)]
    linked = [replace(job, run_id="5" * 32) for job in jobs]
    text = as_markdown(ranking(linked, runs), [])
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows[0].startswith("| 1 | [dot · ")
    assert 10 < len(rows) < 20
    assert len(text) + 60 * len(rows) < 4000
    assert text.endswith(f"{20 - len(rows)} more points are in the comparison.")
