"""The line that says how a sweep stands."""

from __future__ import annotations

from attnlab.runs.sweep_leader import line_of, showing_progress
from attnlab.runs.sweep_record import JobRecord, SweepFolder


def job(number, status, started, ended=None, new=True):
    return JobRecord(
        number, f"job {number}", {}, [], status, 0.0, started, "", ended=ended, new=new
    )


def test_line_estimates_the_time_left_from_the_jobs_that_trained():
    jobs = [
        job(0, "finished", 0, 100),
        job(1, "finished", 0, 200),
        job(2, "finished", 200, 201, new=False),  # was there before: it says nothing about the time
        job(3, "failed", 200, 350),
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


def test_progress_on_exit_reports_a_job_that_ended_last(tmp_path, capsys):
    folder = SweepFolder(tmp_path)
    with showing_progress(folder, points=1, workers=1, start=0.0):
        folder.write_job(job(0, "running", 10.0))
        folder.write_job(job(0, "finished", 10.0, 20.0))
    assert capsys.readouterr().err == "sweep: 1 of 1 done, 0 running, 0 failed\n"
