"""The line that says how a sweep stands."""

from __future__ import annotations

import pytest

from attnlab.sweep.progress import duration, line_of
from attnlab.sweep.record import JobRecord


def job(number, status, started, ended=None, new=True):
    return JobRecord(number, f"job {number}", {}, [], status, 0.0, started, "", ended=ended, new=new)


def test_the_time_left_is_what_the_rest_takes_at_the_mean_of_those_that_trained():
    jobs = [
        job(0, "finished", 0, 100),
        job(1, "finished", 0, 200),
        job(2, "finished", 200, 201, new=False),  # was there before: it tells nothing of the time
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
