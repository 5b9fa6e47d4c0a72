"""The line that says how a sweep stands."""

from __future__ import annotations

import io
import time
from typing import ClassVar

import pytest
from rich.console import Console

from attnlab.sweeps.progress import SweepProgress, duration, line_of
from attnlab.sweeps.record import JobRecord


def job(number, status, started, ended=None, new=True):
    return JobRecord(number, f"job {number}", {}, [], status, 0.0, started, "", ended=ended, new=new)


def test_the_time_left_is_what_the_rest_takes_at_the_mean_of_those_that_trained():
    jobs = [
        job(0, "finished", 0, 100),
        job(1, "finished", 0, 200),
        job(2, "finished", 200, 201, new=False),  # was there before: it says nothing about the time
        job(3, "failed", 200, 350),
        job(4, "running", 300),
    ]
    # Mean 150 s; 6 points are left, one of which has run for 50 s; two workers: (6 * 150 - 50) / 2.
    assert line_of(jobs, 10, 2, now=350.0) == "sweep: 3 of 10 done, 1 running, 1 failed, 7 min left"


def test_before_anything_has_ended_no_time_is_guessed():
    assert line_of([job(0, "running", 0)], 4, 1, now=10.0) == "sweep: 0 of 4 done, 1 running, 0 failed"


def test_at_the_end_nothing_is_left():
    jobs = [job(0, "finished", 0, 10), job(1, "failed", 0, 10)]
    assert line_of(jobs, 2, 1, now=20.0) == "sweep: 1 of 2 done, 0 running, 1 failed"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (5400, "1 h 30 min")])
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.fixture
def folder(monkeypatch):
    """A sweep's folder whose jobs are what the test says, looked at every moment."""
    monkeypatch.setattr("attnlab.sweeps.progress._INTERVAL", 0.005)

    class Folder:
        found: ClassVar[list[JobRecord]] = []

        def jobs(self, start):
            assert start == 7.0
            return list(self.found)

    return Folder()


def until(happened):
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_line_whenever_a_job_ends_and_none_for_anything_else(folder, capsys):
    seen = []

    def lines():
        seen.extend(capsys.readouterr().err.splitlines())
        return seen

    with SweepProgress(folder, points=3, workers=1, start=7.0, live=True):  # no terminal: nothing to keep a line on
        folder.found = [job(0, "running", 10.0)]
        time.sleep(0.05)
        assert not lines()
        folder.found = [job(0, "failed", 10.0, 20.0), job(1, "running", 20.0)]
        until(lambda: len(lines()) == 1)
        folder.found = [job(0, "failed", 10.0, 20.0), job(1, "finished", 20.0, 30.0, new=False)]
        until(lambda: len(lines()) == 2)
    assert lines()[0].startswith("sweep: 0 of 3 done, 1 running, 1 failed")
    assert lines()[1:] == ["sweep: 1 of 3 done, 0 running, 1 failed, 10 s left"]


def test_sweep_progress_on_exit_reports_a_job_that_finished_last(folder, capsys, monkeypatch):
    monkeypatch.setattr("attnlab.sweeps.progress._INTERVAL", 1000.0)
    with SweepProgress(folder, points=1, workers=1, start=7.0, live=False):
        folder.found = [job(0, "finished", 10.0, 20.0)]
    assert capsys.readouterr().err == "sweep: 1 of 1 done, 0 running, 0 failed\n"


def test_on_a_terminal_one_line_is_written_over(folder, monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr("attnlab.sweeps.progress.Console", lambda **_: Console(file=out, force_terminal=True, width=80))
    with SweepProgress(folder, points=1, workers=1, start=7.0, live=True):
        until(lambda: "0 of 1 done" in out.getvalue())
        folder.found = [job(0, "finished", 10.0, 20.0)]
    written = out.getvalue()
    assert written.rstrip("\x1b[?25h\n").endswith("sweep: 1 of 1 done, 0 running, 0 failed")
    assert "\x1b[" in written
