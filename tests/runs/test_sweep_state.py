"""How a sweep stands, and its end where no process leads it any more."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace

import pytest

from attnlab.commands import main
from attnlab.commands import sweep as sweep_command
from attnlab.errors import ExperimentError
from attnlab.runs import slurm_jobs
from attnlab.runs.search_result import SearchResult
from attnlab.runs.slurm_jobs import SweepOnSlurm
from attnlab.runs.sweep_claims import Claims
from attnlab.runs.sweep_leader import close_if_over, is_over, lead_sweep
from attnlab.runs.sweep_record import JobRecord, SweepRecord
from attnlab.runs.sweep_settings import JobProcesses
from attnlab.runs.sweep_state import state_of

RECORD = SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1,2"], 2, None, 0.0)
SLURM = JobProcesses("slurm", 2, waits=False)


@pytest.fixture
def lead(tracking, runs):
    def lead(processes=SLURM):
        return lead_sweep(RECORD, tracking(), runs, processes)

    return lead


def write(folder, number, status, **more):
    start = folder.read().started
    ended = None if status == "running" else start + 60
    name = f"seed {number + 1}"
    job = JobRecord(number, name, {}, [], status, start, start, "out", ended=ended)
    folder.write_job(replace(job, **more))


def status_of_run(client, folder):
    return client.get_run(folder.read().run_id).info.status


def test_sweep_that_waits_for_no_job_is_closed_after_the_last_one(
    lead, client, tracking, runs, capsys
):
    with lead() as folder:
        pass
    assert "attnlab sweep status 0123456789abcdef shows how it stands" in capsys.readouterr().err
    assert status_of_run(client, folder) == "RUNNING"

    write(folder, 0, "finished")
    close_if_over(folder, tracking(), runs, None)
    assert status_of_run(client, folder) == "RUNNING"
    write(folder, 1, "finished")
    close_if_over(folder, tracking(), runs, None)
    assert status_of_run(client, folder) == "FINISHED"
    assert folder.read().ended is not None
    note = client.get_run(folder.read().run_id).data.tags["mlflow.note.content"]
    assert "2 of 2 points finished, 0 failed" in note


def test_finished_sweep_that_is_given_again_keeps_the_count_of_its_points(lead, client):
    with lead() as folder:
        write(folder, 0, "finished")
        write(folder, 1, "finished")
    with lead() as folder:  # gives its jobs to Slurm, and does not wait for them
        pass
    note = client.get_run(folder.read().run_id).data.tags["mlflow.note.content"]
    assert "2 of 2 points finished, 0 failed" in note


def test_stopped_command_says_that_its_jobs_go_on(lead, capsys):
    with pytest.raises(KeyboardInterrupt), lead():
        raise KeyboardInterrupt
    said = capsys.readouterr().err
    assert "the jobs that Slurm has go on; the same command joins them" in said
    with pytest.raises(KeyboardInterrupt), lead(JobProcesses("serial", 1)):
        raise KeyboardInterrupt
    assert "go on" not in capsys.readouterr().err


def test_failed_last_point_fails_the_run_and_raises_nothing(lead, client, tracking, runs):
    with lead() as folder:
        pass
    write(folder, 0, "finished")
    write(folder, 1, "failed", error="too long.")
    close_if_over(folder, tracking(), runs, None)
    assert status_of_run(client, folder) == "FAILED"


def test_sweep_that_somebody_leads_is_left_to_that_process(lead, client, tracking, runs):
    with lead() as folder:
        write(folder, 0, "finished")
        write(folder, 1, "finished")
        close_if_over(folder, tracking(), runs, None)
        assert status_of_run(client, folder) == "RUNNING"
    # Its jobs were faster than the command that gave them to Slurm.
    assert status_of_run(client, folder) == "FINISHED"


def test_stopped_point_stands_with_its_time_until_the_sweep_goes_on(lead, capsys, runs):
    error = "stopped by Ctrl-C; the same command goes on"

    def stopped_sweep():
        with lead(JobProcesses("serial", 1)) as folder:
            write(folder, 0, "stopped", ended=folder.read().started, error=error)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped_sweep()
    capsys.readouterr()
    assert main(["sweep", "status", "--runs", str(runs)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"0 +stopped +0:00:00 +seed 1 +" + re.escape(f"({error})"), said)
    assert "1 stopped, 1 not started of 2 points; it does not go on by itself" in said
    with lead(JobProcesses("serial", 1)) as folder:
        assert state_of(folder).counts == {"not started": 2}


def test_job_that_was_stopped_on_a_cluster_fails_the_command(lead):
    def sweep_with_a_stopped_job():
        with lead() as folder:
            write(folder, 0, "stopped", error="stopped by SIGTERM; the same command goes on")
            write(folder, 1, "finished")

    with pytest.raises(ExperimentError, match="1 of 2 jobs were stopped: seed 1"):
        sweep_with_a_stopped_job()


def test_sweep_is_over_when_each_point_has_ended_in_this_start(lead):
    with lead() as folder:
        pass
    write(folder, 0, "finished", start_of_sweep=1.0)
    assert not is_over(folder)
    write(folder, 1, "failed", start_of_sweep=1.0, ended=2.0)  # it is tried again
    assert not is_over(folder)
    write(folder, 1, "running")
    assert not is_over(folder)
    write(folder, 1, "failed")
    assert is_over(folder)


def test_joined_job_that_fails_ends_the_sweep_of_the_command_that_joined_it(lead):
    """The same command was given again while the jobs of the first one ran."""
    with lead() as folder:
        pass
    first = folder.read().started
    with lead() as folder:
        pass
    second = folder.read().started
    assert second > first
    write(folder, 0, "finished", start_of_sweep=first)
    write(folder, 1, "failed", start_of_sweep=first, ended=second + 60)
    assert is_over(folder)
    assert state_of(folder).counts == {"finished": 1, "failed": 1}


@pytest.fixture
def on_slurm(monkeypatch):
    """Says which points Slurm has: {number: (id, state)}."""
    states = {}
    monkeypatch.setattr(SweepOnSlurm, "states", lambda self: states)
    return states


@pytest.fixture
def silent_slurm(monkeypatch):
    """Slurm was given jobs, and does not say which of them it has."""
    monkeypatch.setattr(SweepOnSlurm, "states", lambda self: None)


def test_points_stand_as_their_records_and_slurm_say(lead, on_slurm):
    with lead() as folder:
        write(folder, 0, "running")
        assert state_of(folder).counts == {"running": 1, "not started": 1}
        assert state_of(folder).goes_on
    assert state_of(folder).counts == {"stopped": 1, "not started": 1}
    assert not state_of(folder).goes_on
    on_slurm.update({0: ("7_0", "RUNNING"), 1: ("7_1", "PENDING")})
    assert state_of(folder).counts == {"running": 1, "queued": 1}
    assert state_of(folder).goes_on
    write(folder, 0, "finished")
    write(folder, 1, "failed")
    on_slurm.clear()
    assert state_of(folder).counts == {"finished": 1, "failed": 1}


def test_point_stands_as_its_record_says_while_its_job_on_slurm_ends(lead, on_slurm):
    with lead() as folder:
        pass
    on_slurm.update({0: ("7_0", "RUNNING"), 1: ("7_1", "COMPLETING")})
    assert state_of(folder).counts == {"running": 1, "queued": 1}  # Python starts
    write(folder, 0, "finished")
    write(folder, 1, "held", ended=None)
    assert state_of(folder).counts == {"finished": 1, "held": 1}
    with lead():  # the same command, while the first job ends
        pass
    write(folder, 0, "finished", start_of_sweep=1.0, ended=2.0)
    on_slurm.update({1: ("8_0", "PENDING")})
    assert state_of(folder).counts == {"finished": 1, "queued": 1}


def test_stopped_point_that_the_last_job_has_taken_over_runs(lead, on_slurm):
    with lead() as folder:
        pass
    write(folder, 0, "running")
    (stopped, _) = state_of(folder).points
    assert (stopped.state, stopped.since) == ("stopped", None)  # nobody knows since when
    assert not list(folder.path.rglob("0.lock"))
    claims = Claims(folder)
    assert claims.take(0)
    assert state_of(folder).points[0].state == "running"
    claims.give_all_back()
    assert state_of(folder).points[0].state == "stopped"


@pytest.mark.usefixtures("silent_slurm")
def test_points_stand_as_their_records_say_while_slurm_does_not_answer(
    lead, runs, capsys, monkeypatch
):
    with lead() as folder:
        pass
    write(folder, 0, "running")
    capsys.readouterr()
    assert main(["sweep", "status", "--runs", str(runs)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "1 running, 1 not started of 2 points, by its records alone; which of its jobs Slurm still "
        "has is not known, for squeue does not answer here"
    )
    assert main(["sweep", "cancel", "--runs", str(runs)]) == 1
    assert "error: nothing was cancelled: which of its jobs" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")
    assert main(["sweep", "wait", "--runs", str(runs)]) == 1
    assert "error: there is no squeue on this machine" in capsys.readouterr().err
    write(folder, 0, "finished")
    write(folder, 1, "finished")
    assert main(["sweep", "wait", "--runs", str(runs)]) == 0


def test_command_waits_on_while_slurms_controller_restarts(lead, runs, monkeypatch):
    with lead():
        pass
    answers = iter([None, {0: ("7_0", "RUNNING")}, None, {}])
    monkeypatch.setattr(SweepOnSlurm, "states", lambda self: next(answers))
    monkeypatch.setattr(sweep_command, "_LOOK_INTERVAL", 0.0)
    monkeypatch.setattr(sweep_command.shutil, "which", lambda program: "/usr/bin/squeue")
    assert main(["sweep", "wait", "--runs", str(runs)]) == 1
    assert next(answers, "none is left") == "none is left"


def test_command_says_how_a_sweep_stands(lead, runs, on_slurm, capsys):
    led = ExitStack()
    folder = led.enter_context(lead())
    write(folder, 0, "finished")
    write(folder, 1, "failed", error="too long.")
    capsys.readouterr()
    assert main(["sweep", "status", "--runs", str(runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    with pytest.raises(ExperimentError, match="1 of 2 jobs failed"):
        led.close()
    assert lines == [
        "sweep 0123456789abcdef (seed)",
        "   0  finished      0:01:00  seed 1",
        "   1  failed        0:01:00  seed 2  (too long.)",
        "1 finished, 1 failed of 2 points; 1 process leads it",
    ]
    assert main(["sweep", "wait", "0123", "--runs", str(runs)]) == 1
    assert "error: 1 of 2 points are not finished" in capsys.readouterr().err
    write(folder, 1, "finished")
    assert main(["sweep", "wait", "--runs", str(runs)]) == 0
    said = capsys.readouterr().err
    assert "2 finished of 2 points; compare them: python pipelines/compare.py sweep=0123" in said


def test_trainings_that_pruning_made_needless_are_pruned(tracking, runs, on_slurm, capsys):
    record = replace(RECORD, points=6)  # two trials of three seeds
    with lead_sweep(record, tracking(), runs, SLURM) as folder:
        for number in (0, 1):
            write(folder, number, "finished")
        SearchResult("made", ["bleu"], 3, 0, 1, 0, [], spared=2).write(folder.path)
        assert state_of(folder).counts == {"finished": 2, "pruned": 2, "not started": 2}
        states = [point.state for point in state_of(folder).points]
        assert states[2:] == ["not started", "not started", "pruned", "pruned"]
        write(folder, 2, "finished")
        write(folder, 3, "finished")
    assert state_of(folder).counts == {"finished": 4, "pruned": 2}
    assert main(["sweep", "wait", "--runs", str(runs)]) == 0
    assert "4 finished, 2 pruned of 6 points; compare them" in capsys.readouterr().err


def test_point_that_got_another_number_is_not_missing(lead, on_slurm):
    """A leader of a search died, and another one trained its point again, as point 2."""
    with lead() as folder:
        write(folder, 1, "finished")
        write(folder, 2, "finished")
        assert state_of(folder).counts == {"finished": 2}


def test_jobs_of_a_sweep_are_cancelled_by_their_ids(
    lead, runs, on_slurm, capsys, tmp_path, monkeypatch
):
    scancel = tmp_path / "scancel"
    scancel.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/cancelled\n')
    scancel.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with lead():
        assert main(["sweep", "cancel", "--runs", str(runs)]) == 1
        assert "stop the command that leads it by Ctrl-C" in capsys.readouterr().err
    on_slurm.update({0: ("7_0", "RUNNING"), 1: ("7_1", "PENDING")})
    monkeypatch.setattr(sweep_command, "_PATIENCE", 0.0)
    assert main(["sweep", "cancel", "--runs", str(runs)]) == 0
    assert (tmp_path / "cancelled").read_text() == "7_0 7_1\n"


def test_cancelling_a_sweep_that_nobody_leads_closes_its_run(
    lead, client, runs, on_slurm, capsys, monkeypatch
):
    with lead() as folder:
        pass
    write(folder, 0, "running")
    on_slurm.update({0: ("7_0", "RUNNING"), 1: ("7_1", "PENDING")})
    monkeypatch.setattr(slurm_jobs, "cancel_jobs", lambda jobs: on_slurm.clear())
    assert status_of_run(client, folder) == "RUNNING"
    assert main(["sweep", "cancel", "--runs", str(runs)]) == 0
    assert "cancelled: 7_0, 7_1; the same command" in capsys.readouterr().out
    assert status_of_run(client, folder) == "KILLED"
    assert state_of(folder).counts == {"stopped": 1, "not started": 1}
    (job,) = folder.jobs()
    assert job.error == "its job on Slurm was cancelled; the same command goes on"
    with lead():  # goes on
        assert status_of_run(client, folder) == "RUNNING"


def test_command_without_a_sweep_is_a_sentence(tmp_path, capsys):
    assert main(["sweep", "status", "--runs", str(tmp_path)]) == 1
    assert "error: sweep: there is no sweep in" in capsys.readouterr().err
