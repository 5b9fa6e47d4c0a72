"""Jobs whose points other processes hold: they take the next ones, and the last takes the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from entry_points import PIPELINES, TINY, mlflow_client, the_sweep

from attnlab.locks import lock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

QUIET = ("tracking.system_metrics=false", "tracking.heat_map_sentences=0", "chain=false")
# As on Slurm, but that there is none.
ON_PROCESSES = (
    "launcher=slurm",
    "launcher.wait=false",
    "hydra.launcher._target_=hydra_plugins.processes_as_slurm.SlurmArrayLauncher",
)


@pytest.fixture
def folder(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with MLflow's database, and Slurm's client, which knows no job, in PATH."""
    (tmp_path / "runs").mkdir()
    shutil.copy(empty_database, tmp_path / "runs" / "mlflow.db")
    programs = tmp_path / "slurm"
    programs.mkdir()
    for name in ("srun", "squeue"):
        (programs / name).write_text("#!/bin/sh\nexit 0\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path


@contextmanager
def training(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`python pipelines/train.py` in a process of its own; no job of it outlives the block."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(Path(__file__).parent / "plugins"),  # of the launcher
    }
    command = [sys.executable, str(PIPELINES / "train.py"), *arguments, *TINY, *QUIET]
    with (folder / "err.txt").open("w") as err:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=err, stderr=err, text=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for left in processes_in(folder):
            left.kill()


def processes_in(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.cwd() == str(folder):
                found.append(process)
    return found


def said(folder: Path) -> str:
    """What the command and its jobs printed."""
    files = [folder / "err.txt", *(folder / "runs").rglob("*_log.*")]
    return "\n".join(path.read_text(errors="replace") for path in files)


def wait_until(is_so: Callable[[], bool], what: str, folder: Path) -> None:
    deadline = time.monotonic() + 200
    while not is_so():
        assert time.monotonic() < deadline, f"no {what}: {said(folder)}"
        time.sleep(0.2)


def statuses(folder: Path) -> Counter[str]:
    if not list((folder / "runs" / "sweeps").glob("*/sweep.json")):
        return Counter()
    return Counter(job.status for job in the_sweep(folder).jobs())


def unfinished_point(folder: Path) -> Path:
    """The folder of the point with seed 1, whose training has not ended."""
    with training(folder, "seed=1") as process:
        assert process.wait(400) == 0, said(folder)
    (done,) = (folder / "runs" / "points").glob("*/done.json")
    done.unlink()
    return done.parent


def checked_sweep(folder: Path, points: int) -> None:
    """Check that all points are finished, and MLflow has one finished run of each."""
    assert statuses(folder) == {"finished": points}
    record = the_sweep(folder).read()
    assert record.ended is not None
    client = mlflow_client(folder)
    runs = client.search_runs(["1"])
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len(runs) == points + 1
    assert not list((the_sweep(folder).path / "jobs").glob("*.lock"))


def test_worker_takes_the_next_point_for_a_held_one_which_the_leader_waits_for(
    folder: Path,
) -> None:
    held = lock(unfinished_point(folder) / "lock")
    held.acquire()
    with training(folder, "-m", "seed=1,2,3", "launcher=joblib") as sweep:
        others = {"finished": 2, "held": 1}
        wait_until(lambda: statuses(folder) == others, "two finished points", folder)
        wait_until(lambda: "waits for other processes" in said(folder), "wait", folder)
        assert sweep.poll() is None
        assert the_sweep(folder).jobs()[0].status == "held"
        held.release()
        assert sweep.wait(400) == 0, said(folder)
    checked_sweep(folder, points=3)


def test_last_job_of_a_sweep_without_leader_runs_the_held_point(folder: Path) -> None:
    held = lock(unfinished_point(folder) / "lock")
    held.acquire()
    with training(folder, "-m", "seed=1,2", *ON_PROCESSES) as command:
        assert command.wait(400) == 0, said(folder)
        last = "point 0 is left, and this is the last job of the sweep"
        wait_until(lambda: last in said(folder), "last job", folder)
        assert statuses(folder)["finished"] == 1
        held.release()
        wait_until(lambda: the_sweep(folder).read().ended is not None, "end", folder)
        wait_until(lambda: not processes_in(folder), "end of the processes", folder)
    checked_sweep(folder, points=2)


def test_last_job_of_a_sweep_without_leader_runs_the_point_of_a_killed_one(folder: Path) -> None:
    with training(folder, "-m", "seed=1,2", *ON_PROCESSES) as command:
        assert command.wait(400) == 0, said(folder)
        claim = the_sweep(folder).path / "jobs" / "0.lock"

        def holders() -> list[psutil.Process]:
            found = []
            for process in processes_in(folder):
                with suppress(psutil.Error):
                    if str(claim) in [file.path for file in process.open_files()]:
                        found.append(process)
            return found

        wait_until(lambda: statuses(folder)["running"] == 2, "two running jobs", folder)
        for process in holders():
            process.kill()
        wait_until(lambda: the_sweep(folder).read().ended is not None, "end", folder)
        wait_until(lambda: not processes_in(folder), "end of the processes", folder)
    assert "point 0 is left, and this is the last job of the sweep" in said(folder)
    checked_sweep(folder, points=2)
