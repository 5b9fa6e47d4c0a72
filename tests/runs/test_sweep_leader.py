"""The first process of a sweep."""

from __future__ import annotations

import pytest

from attnlab.runs.sweep_leader import lead_sweep
from attnlab.runs.sweep_record import SweepRecord
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
