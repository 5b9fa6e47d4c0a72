"""Verdicts of a comparison as tags of the runs of a sweep's points."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attnlab.runs.delivery import deliver
from attnlab.runs.run import Run
from attnlab.runs.sweep_leader import lead_sweep
from attnlab.runs.sweep_record import JobRecord, SweepRecord
from attnlab.runs.sweep_settings import JobProcesses

SWEEP = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1,2"], 2, None, 0.0)
OTHER = replace(SWEEP, identity="fedcba9876543210")
VERDICTS = {"dot": "best, certain (2 seeds)", "none": "one seed: no verdict"}


@pytest.fixture
def swept(tracking, runs, record):
    """Leads a sweep of two finished points; returns its folder."""

    def lead(sweep=SWEEP, *, was_trained=True):
        with lead_sweep(sweep, tracking(), runs, JobProcesses("serial", 1)) as folder:
            started = folder.read()
            for number, name in enumerate(VERDICTS):
                tags = {"sweep": sweep.identity, "mlflow.parentRunId": started.run_id}
                of_point = replace(record, name=name, tags=tags)
                with tracking(log_model=False).start(runs, place(runs, number), of_point) as run:
                    pass
                job = JobRecord(
                    number,
                    name,
                    {},
                    [],
                    "finished",
                    started.started,
                    started.started,
                    "out",
                    identity=place(runs, number).name,
                    new=was_trained,
                    run_id=run.run_id,
                )
                folder.write_job(job)
        return folder

    return lead


def place(runs, number):
    return runs / "points" / f"000000000000000{number}"


@pytest.fixture
def tagged(client):
    """{name of a point: the verdict that MLflow shows} of a sweep."""

    def of(folder):
        tags = {}
        for job in folder.jobs():
            tags[job.name] = client.get_run(job.run_id).data.tags.get("verdict")
        return tags

    return of


NONE = dict.fromkeys(VERDICTS)


def test_sweep_that_was_not_compared_has_no_verdicts(swept, tagged):
    assert tagged(swept()) == NONE


def test_verdicts_are_tags_of_runs_that_are_not_reopened(swept, tracking, runs, client, tagged):
    folder = swept()
    run_id = folder.jobs()[0].run_id
    before = client.get_run(run_id).info
    for _ in range(2):
        tracking().set_verdicts(runs, folder.path, VERDICTS)
        assert tagged(folder) == VERDICTS
    after = client.get_run(run_id).info
    assert (after.status, after.end_time) == (before.status, before.end_time)


def test_point_that_a_later_comparison_leaves_out_loses_its_verdict(swept, tracking, runs, tagged):
    folder = swept()
    tracking().set_verdicts(runs, folder.path, VERDICTS)
    tracking().set_verdicts(runs, folder.path, {"dot": "one seed: no verdict"})
    assert tagged(folder) == {"dot": "one seed: no verdict", "none": None}


def test_verdicts_stay_until_a_point_is_trained_anew(swept, tracking, runs, tagged):
    folder = swept()
    tracking().set_verdicts(runs, folder.path, VERDICTS)
    tracking().describe_comparison(runs, folder.path, "dot is better.")
    assert tagged(swept(was_trained=False)) == VERDICTS
    assert tagged(swept(was_trained=True)) == NONE


def test_run_that_another_sweep_takes_over_loses_its_verdict(swept, tracking, runs, tagged):
    folder = swept()
    tracking().set_verdicts(runs, folder.path, VERDICTS)
    assert tagged(swept(OTHER, was_trained=False)) == NONE
    # The comparison of the first sweep says nothing of the points of the second.
    tracking().set_verdicts(runs, folder.path, VERDICTS)
    assert tagged(folder) == NONE


def test_verdicts_that_mlflow_lacks_wait_on_disk_after_one_warning(
    swept, tracking, runs, tagged, capsys, disconnected
):
    folder = swept()
    capsys.readouterr()
    with disconnected():
        tracking(when_unreachable="warn").set_verdicts(runs, folder.path, VERDICTS)
    assert capsys.readouterr().err.count("warning: ") == 1
    assert tagged(folder) == NONE
    found = [Run.read(place(runs, number)) for number in (0, 1)]
    assert [run.state.verdict for run in found] == list(VERDICTS.values())
    assert all(run.pending for run in found)

    deliver(tracking(), runs)
    assert tagged(folder) == VERDICTS


def test_damaged_run_keeps_no_other_point_from_its_verdict(swept, tracking, runs, tagged):
    folder = swept()
    (place(runs, 0) / "run" / "run.json").write_text("{", encoding="utf-8")
    tracking().set_verdicts(runs, folder.path, VERDICTS)
    assert tagged(folder) == {"dot": None, "none": VERDICTS["none"]}
