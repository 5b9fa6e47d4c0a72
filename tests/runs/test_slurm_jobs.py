"""Jobs of a sweep on Slurm, whose `squeue` is a script here."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlab.errors import ExperimentError
from attnlab.runs import slurm_jobs
from attnlab.runs.slurm_jobs import (
    Submitted,
    SweepOnSlurm,
    WaitedFor,
    largest_array,
    states_of_jobs,
)
from attnlab.runs.sweep_job import running
from attnlab.runs.sweep_record import JobRecord, SweepFolder, SweepRecord


class Squeue:
    """A `squeue` that gives one answer after the other, and its last one from then on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def answers(self, *texts: str | None) -> None:
        """None: an error, as of a controller that restarts."""
        for number, text in enumerate(texts):
            script = "echo 'Unable to contact slurm controller' >&2; exit 1"
            if text == "forgotten":
                script = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
            elif text is not None:
                script = "\n".join(f"echo '{line}'" for line in text.split())
            (self._folder / f"answer{number}").write_text(script)
        (self._folder / "asked").write_text("0")
        (self._folder / "squeue").write_text(
            f"#!/bin/sh\ncd {self._folder}\nn=$(cat asked)\n"
            f"echo $((n < {len(texts) - 1} ? n + 1 : n)) > asked\n. ./answer$n\n"
        )
        (self._folder / "squeue").chmod(0o755)


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Squeue:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_jobs, "_RESULT_INTERVAL", 0.01)
    monkeypatch.setattr(slurm_jobs, "_QUEUE_INTERVAL", 0.0)
    return Squeue(folder)


def job(job_id: str, folder: Path, has_result: bool = False) -> SimpleNamespace:
    folder = folder / job_id
    folder.mkdir()
    paths = SimpleNamespace(
        folder=folder, result_pickle=folder / "result.pkl", stderr=folder / "err.txt"
    )
    if has_result:
        paths.result_pickle.touch()
    return SimpleNamespace(job_id=job_id, paths=paths)


def waited(*jobs: SimpleNamespace) -> dict[int, str | None]:
    """How each job ended."""
    waiting = WaitedFor()
    waiting.add(dict(enumerate(jobs)))
    ended: dict[int, str | None] = {}
    while len(ended) < len(jobs):
        ended |= waiting.ended()
    return ended


def test_job_that_was_cancelled_is_reported_while_others_go_on(squeue, tmp_path):
    cancelled, running = job("7_0", tmp_path), job("7_1", tmp_path)
    squeue.answers("7_0|CANCELLED 7_1|RUNNING")
    waiting = WaitedFor()
    waiting.add({0: cancelled, 1: running})
    ended = waiting.ended()
    running.paths.result_pickle.touch()  # after the news of the first one
    assert waiting.ended() == {1: None}
    assert list(ended) == [0]
    assert ended[0] == (
        "its Slurm job 7_0 is over: it was cancelled; the same command goes on "
        f"(what Slurm and the job printed: {cancelled.paths.stderr})"
    )


@pytest.mark.parametrize("answer", ["forgotten", "8_0|RUNNING"])
def test_job_that_slurm_has_forgotten_is_lost(squeue, tmp_path, answer):
    squeue.answers(answer)
    ended = waited(job("7_0", tmp_path))
    assert "Slurm does not know it any more" in str(ended[0])


def test_job_whose_node_failed_is_waited_for_when_slurm_queues_it_again(
    squeue, tmp_path, monkeypatch
):
    found = job("7", tmp_path)
    squeue.answers("7|NODE_FAIL", "7|PENDING", "7|NODE_FAIL", "7|RUNNING", "7|COMPLETED")
    original = slurm_jobs.states_of_jobs
    asked = []

    def with_result_at_the_end(job_ids):
        states = original(job_ids)
        asked.append(states["7"])
        if states["7"] == "COMPLETED":
            found.paths.result_pickle.touch()
        return states

    monkeypatch.setattr(slurm_jobs, "states_of_jobs", with_result_at_the_end)
    assert waited(found) == {0: None}
    assert asked == ["NODE_FAIL", "PENDING", "NODE_FAIL", "RUNNING", "COMPLETED"]


def test_job_is_not_lost_while_the_controller_does_not_answer(squeue, tmp_path):
    squeue.answers(None, None, None, "7|FAILED")
    assert states_of_jobs(["7"]) is None
    assert "it ended without a result" in str(waited(job("7", tmp_path))[0])


def test_results_are_found_without_asking_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert waited(job("7_0", tmp_path, has_result=True)) == {0: None}


@pytest.fixture
def sweep(tmp_path: Path) -> SweepOnSlurm:
    folder = SweepFolder(tmp_path / "runs" / "sweeps" / "0123456789abcdef")
    folder.path.mkdir(parents=True)
    folder.write(
        SweepRecord("0123456789abcdef", "seed", ["seed"], ["seed=1,2"], 2, None, started=5.0)
    )
    return SweepOnSlurm(folder)


def record(sweep: SweepOnSlurm, number: int) -> JobRecord:
    (found,) = [job for job in sweep._folder.jobs() if job.number == number]
    return found


def test_lost_job_that_never_started_has_a_record(sweep):
    sweep._folder.record_lost(1, ["seed=2"], "it was cancelled")
    found = record(sweep, 1)
    assert (found.name, found.status, found.error) == ("seed 2", "failed", "it was cancelled")
    assert found.start_of_sweep == 5.0


@pytest.mark.parametrize(("status", "error"), [("running", "lost"), ("failed", "out of memory")])
def test_lost_job_keeps_the_error_that_it_reported_itself(sweep, status, error):
    own = None if status == "running" else error
    sweep._folder.write_job(
        JobRecord(0, "seed 1", {}, [], status, 5.0, 6.0, "out", error=own)  # type: ignore[arg-type]
    )
    sweep._folder.record_lost(0, ["seed=1"], "lost")
    assert (record(sweep, 0).status, record(sweep, 0).error) == ("failed", error)


def test_points_that_slurm_still_has_are_found_by_a_second_leader(sweep, squeue):
    sweep.remember([Submitted(n, [f"seed={n}"], f"7_{n}", "f/%j") for n in range(3)])
    sweep.remember([Submitted(2, ["seed=2"], "8_0", "f/%j")])  # submitted again
    squeue.answers("7_0|RUNNING 7_1|CANCELLED 7_2|RUNNING 8_0|PENDING")
    assert {n: point.job for n, point in sweep.still_queued().items()} == {0: "7_0", 2: "8_0"}


def test_second_leader_is_refused_while_slurm_does_not_answer(sweep, squeue):
    """It would submit points once more whose jobs wait or run."""
    squeue.answers(None)
    assert sweep.still_queued() == {}  # nothing was submitted
    sweep.remember([Submitted(0, ["seed=0"], "7_0", "f/%j")])
    assert sweep.states() is None
    with pytest.raises(ExperimentError, match="launcher: Slurm does not answer"):
        sweep.still_queued()


@pytest.mark.parametrize(
    ("answer", "largest"),
    [("MaxArraySize            = 1001", 1001), ("MaxArraySize = 0", None), ("nothing", None)],
)
def test_largest_array_is_what_slurm_says(tmp_path, monkeypatch, answer, largest):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho 'MailProg = mail'\necho '{answer}'\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert largest_array() == largest
    monkeypatch.setenv("PATH", "")
    assert largest_array() is None


def test_adopted_job_belongs_to_the_present_start(sweep):
    sweep._folder.write_job(JobRecord(0, "seed 1", {}, [], "finished", 1.0, 2.0, "out"))
    sweep.adopt(0)
    assert [job.number for job in sweep._folder.jobs(5.0)] == [0]


@pytest.mark.parametrize(
    ("code", "variables", "status"),
    [
        (-1, {"SUBMITIT_EXECUTOR": "slurm"}, "running"),
        (143, {"SUBMITIT_EXECUTOR": "slurm"}, "stopped"),
        (-1, {}, "failed"),
    ],
)
def test_job_that_slurm_queues_again_has_not_failed(
    sweep, tmp_path, monkeypatch, code, variables, status
):
    monkeypatch.delenv("SUBMITIT_EXECUTOR", raising=False)
    monkeypatch.setenv("ATTNLAB_SWEEP", str(sweep._folder.path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit), running(0, ["seed=1"], tmp_path / "out", {"seed": 1}):
        raise SystemExit(code)
    assert record(sweep, 0).status == status
