"""Sweeps in several processes: killed and started again, ended by a signal, through a queue."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from entry_points import ANY_ATTENTION, PIPELINES, TINY, mlflow_client, the_sweep

from attnlab.runs.sweep_record import SweepFolder

POINTS = ("model/attention=dot,none,general",)
# Long enough to be killed in: twenty validations.
QUIET = ("tracking.system_metrics=false", "tracking.heat_map_sentences=0")
LONG = (*ANY_ATTENTION, "training.max_steps=60", "training.validate_every=3", *QUIET)


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path) -> Path:
    """A folder with MLflow's database."""
    return with_database(tmp_path, empty_database)


def with_database(folder: Path, database: Path) -> Path:
    (folder / "runs").mkdir()
    shutil.copy(database, folder / "runs" / "mlflow.db")
    return folder


@contextmanager
def sweep(
    folder: Path, *arguments: str, python: str | Path = sys.executable
) -> Iterator[subprocess.Popen[str]]:
    """`python pipelines/train.py -m ...` in a folder, in a process of its own.

    The process leaves nothing behind.
    """
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "WARM_PYTHON_BLANK_PICTURES": "1",
    }
    command = [python, str(PIPELINES / "train.py"), "-m", *arguments]
    with (folder / "err.txt").open("w") as err:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=err, text=True,
            preexec_fn=hear_ctrl_c,
        )  # fmt: skip
    try:
        yield process
    finally:
        for left in (
            [*psutil.Process(process.pid).children(recursive=True)]
            if process.poll() is None
            else []
        ):
            left.kill()
        process.kill()
        process.wait()


def hear_ctrl_c() -> None:
    """Whoever was started behind a shell's `&` ignores it, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def said(folder: Path) -> str:
    return (folder / "err.txt").read_text()


def in_the_middle(folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a point is finished and another one has a checkpoint, but is not finished."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        found = list((folder / "runs" / "sweeps").glob("*/sweep.json"))
        jobs = SweepFolder(found[0].parent).jobs() if found else []
        running = [
            folder / "runs" / "points" / str(job.identity)
            for job in jobs
            if job.status == "running"
        ]
        saved = [point for point in running if (point / "checkpoints" / "last.ckpt").is_file()]
        training = [point for point in saved if not (point / "done.json").exists()]
        if any(job.status == "finished" for job in jobs) and training:
            return
        time.sleep(0.05)
    raise AssertionError(f"the sweep never came to its middle: {said(folder)}")


def table(folder: Path) -> dict[str, object]:
    """What each point found."""
    return {
        job.name: json.loads((Path(job.output) / "metrics.json").read_text())
        for job in the_sweep(folder).jobs()
    }


def curves(folder: Path) -> dict[str, list[tuple[str, int, float]]]:
    """The tracker's curves of each child, without those of time.

    Every point of a curve is there once.
    """
    client, found = mlflow_client(folder), {}
    for run in client.search_runs(["1"]):
        # `epoch` goes with every record, and of two in one millisecond the tracker keeps one.
        left_out = ("time/", "speed/", "system/", "sweep/", "epoch")
        names = [name for name in run.data.metrics if not name.startswith(left_out)]
        assert run.info.status == "FINISHED", run.info.run_name
        found[run.info.run_name] = [
            (name, point.step, point.value)
            for name in sorted(names)
            for point in sorted(
                client.get_metric_history(run.info.run_id, name), key=lambda point: point.step
            )
        ]
    return found


def statuses(folder: Path) -> set[str]:
    return {run.info.status for run in mlflow_client(folder).search_runs(["1"])}


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path, warm_python: Path
) -> Path:
    """The folder of a sweep that nobody stopped."""
    folder = with_database(tmp_path_factory.mktemp("whole"), empty_database)
    with sweep(folder, *LONG, *POINTS, python=warm_python) as process:
        assert process.wait(300) == 0, said(folder)
    return folder


@pytest.mark.long
@pytest.mark.slow
def test_sweep_stopped_twice_ends_as_one_that_was_never_stopped(whole: Path, folder: Path) -> None:
    """First by SIGTERM, then by SIGKILL."""
    parallel = (*LONG, *POINTS, "launcher=joblib", "launcher.workers=2", "hardware.threads=1")
    for how in (signal.SIGTERM, signal.SIGKILL):
        with sweep(folder, *parallel) as process:
            in_the_middle(folder, process)
            workers = psutil.Process(process.pid).children(recursive=True)
            assert len(workers) >= 2
            process.send_signal(how)
            code = process.wait(90)
            assert not psutil.wait_procs(workers, timeout=20)[1]
        unfinished = [job for job in the_sweep(folder).jobs() if job.status != "finished"]
        assert unfinished
        if how is signal.SIGTERM:
            assert code == 128 + how
            assert {job.status for job in unfinished} == {"stopped"}
            assert statuses(folder) == {"FINISHED", "KILLED"}
    with sweep(folder, *parallel) as process:
        assert process.wait(300) == 0, said(folder)
    logs = "".join(
        (Path(job.output) / "output.log").read_text() for job in the_sweep(folder).jobs()
    )
    assert "goes on from its checkpoint at step" in logs
    assert "is finished already" in logs
    assert table(folder) == table(whole)
    assert curves(folder) == curves(whole)
    assert len(curves(folder)) == 4  # three children and their parent


@pytest.mark.slow
def test_search_starts_a_point_as_soon_as_a_worker_is_free(folder: Path) -> None:
    """The sampler takes the longest training first, beside which a worker has all others."""
    without_steps = [choice for choice in TINY if not choice.startswith("training.max_steps")]
    search = (
        "sweep=optuna", "sweep.sampler=grid", "sweep.seed=1", "sweep.wait_for_batch=false",
        "launcher=joblib", "launcher.workers=2", "hardware.threads=1", "chain=false",
        "training.max_steps=choice(4,8,12,200)",
    )  # fmt: skip
    with sweep(folder, *without_steps, *QUIET, *search) as process:
        assert process.wait(300) == 0, said(folder)
    assert "4 of 4 points finished, 4 of them trained now" in said(folder)
    jobs = the_sweep(folder).jobs()
    (longest,) = [job for job in jobs if job.choices["training.max_steps"] == "200"]
    assert longest.number == 0
    assert longest.ended is not None
    assert all(job.started < longest.ended for job in jobs)


@pytest.mark.slow
def test_ctrl_c_ends_a_serial_sweep_and_closes_its_runs(folder: Path, warm_python: Path) -> None:
    with sweep(folder, *LONG, "seed=1,2", python=warm_python) as process:
        in_the_middle(folder, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(90) == 128 + signal.SIGINT
    assert "Traceback" not in said(folder)
    assert re.search(
        r"^Ctrl-C: saved at step \d+; the same command resumes from there$",
        said(folder),
        re.MULTILINE,
    )
    finished, stopped = the_sweep(folder).jobs()
    assert (finished.status, stopped.status) == ("finished", "stopped")
    assert stopped.error == "stopped by Ctrl-C; the same command goes on"
    assert ": stopped, 0:" in said(folder)
    assert statuses(folder) == {"FINISHED", "KILLED"}


@pytest.mark.slow
def test_killed_worker_fails_its_job_and_leaves_no_run_open(folder: Path) -> None:
    """As where memory runs out."""
    with sweep(folder, *LONG, *POINTS, "launcher=joblib") as process:
        in_the_middle(folder, process)
        running = [job for job in the_sweep(folder).jobs() if job.status == "running"]
        workers = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if child.memory_info().rss > 2e8
        ]
        max(workers, key=lambda child: sum(child.cpu_times()[:2])).kill()
        assert process.wait(90) == 1
    assert running
    assert "Traceback" not in said(folder)
    assert "jobs failed" in said(folder)
    assert "running" not in {job.status for job in the_sweep(folder).jobs()}
    assert "RUNNING" not in statuses(folder)


@pytest.mark.slow
def test_sweep_through_submitit_finishes(folder: Path, warm_python: Path) -> None:
    """Submitit's local executor stands for Slurm.

    Each job is a command of its own, which knows nothing of the sweep's process.
    """
    submitit = (*TINY, *QUIET, "seed=1", "hydra/launcher=submitit_local")
    with sweep(folder, *submitit, python=warm_python) as process:
        assert process.wait(300) == 0, said(folder)
    assert [job.status for job in the_sweep(folder).jobs()] == ["finished"]
    assert len(curves(folder)) == 2  # the job and its parent


@pytest.mark.slow
def test_parts_of_a_sweep_at_once_train_every_point_once(folder: Path, warm_python: Path) -> None:
    command = [warm_python, str(PIPELINES / "train.py"), "-m", *ANY_ATTENTION, "seed=1,2,3"]
    parts = [
        subprocess.Popen(
            [*command, f"sweep.shard={number}/2"],
            cwd=folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for number in (1, 2)
    ]
    said = [part.communicate(timeout=500)[1] for part in parts]
    assert [part.returncode for part in parts] == [0, 0], said
    jobs = the_sweep(folder).jobs()
    assert [(job.number, job.status, job.new) for job in jobs] == [
        (number, "finished", True) for number in range(3)
    ]
    assert sorted("part 1/2, 1 point of 3" in text for text in said) == [False, True]
    assert sum("3 of 3 points finished" in text for text in said) >= 1
    record = the_sweep(folder).read()
    client = mlflow_client(folder)
    assert client.get_run(record.run_id).info.status == "FINISHED"
    runs = client.search_runs(["1"])
    assert sum(run.data.tags.get("mlflow.parentRunId") == record.run_id for run in runs) == 3
    assert len(runs) == 4
