"""The first process of a sweep: it opens the sweep's run, passes it to the jobs, watches them, and closes it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from attnlab.errors import ExperimentError, JobFailedError
from attnlab.sweeps.job import FOLDER_VARIABLE, LEADER_VARIABLE, sentence
from attnlab.sweeps.outliving import this_process
from attnlab.sweeps.progress import SweepProgress
from attnlab.sweeps.record import LOCK, JobRecord, SweepFolder, SweepRecord
from attnlab.tracking.archive import places_of_runs
from attnlab.tracking.run_folder import ARCHIVE, Run, RunRecord
from attnlab.tracking.settings import Tracking

_PATIENCE = 15.0  # seconds for a worker to close its run


class SweepFailedError(ExperimentError):
    """Some of the jobs failed."""


@contextmanager
def led(
    record: SweepRecord, tracking: Tracking, runs_folder: Path, workers: int, on_this_machine: bool, anew: bool = False
) -> Iterator[SweepFolder]:
    """Lead a sweep while the block runs its jobs.

    record: without `run_id` and `started`, which are found here.
    workers: jobs at a time; on_this_machine: whether they end when this process does.
    anew: everything is trained again, and the sweep has a run of its own again beside the one that it had before. One
        that was stopped in doing so goes on.

    Raises SweepFailedError, in place of whatever the block raised, where jobs failed.
    """
    folder = SweepFolder(runs_folder / "sweeps" / record.identity)
    folder.path.mkdir(parents=True, exist_ok=True)
    with _one_leader(folder), _terminable():
        if anew:
            tracking.check_start(runs_folder, of_sweep=True)
            record = replace(record, rerun_since=_begin_anew(folder, tracking, runs_folder))
        of_sweep = RunRecord(
            config={},
            identity=record.identity,
            data_digest="",
            tags={
                "sweep": record.identity,
                "varies": ", ".join(record.varies),
                "overrides": shlex.join(record.overrides),
            },
            name=f"sweep · {record.name}",
        )
        # The database, the experiment and the sweep's run are there before the first job asks for them.
        with tracking.start_sweep(runs_folder, folder.path, of_sweep) as run:
            record = replace(record, run_id=run.run_id, started=time.time())
            folder.write(record)
            # On a terminal that the jobs write to as well, a line that stays would be torn.
            progress = SweepProgress(folder, record.points, workers, record.started, live=record.quiet)
            try:
                with _job_environment(folder), progress:
                    yield folder
            except BaseException as error:
                if on_this_machine:
                    _end_what_runs(folder, record, tracking, runs_folder)
                if isinstance(error, Exception):
                    _close(run, folder, record, error)
                raise
            _close(run, folder, record, None)


def _begin_anew(folder: SweepFolder, tracking: Tracking, runs_folder: Path) -> float:
    """Forget what the sweep was, unless it was beginning anew itself when it was stopped; returns when it began."""
    if folder.exists():
        before = folder.read()
        if before.ended is None and before.rerun_since is not None:
            return before.rerun_since
        tracking.archive(runs_folder, folder.path)
        folder.clear(ARCHIVE)
    return time.time()


def _end_what_runs(folder: SweepFolder, record: SweepRecord, tracking: Tracking, runs_folder: Path) -> None:
    """Stop the workers, and close the jobs that one of them left in the middle: nobody else will."""
    # Joblib's tracker of resources ends by itself, behind the workers, and complains of being stopped.
    children = psutil.Process().children(recursive=True)
    workers = [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]
    for stop in (psutil.Process.terminate, psutil.Process.kill):
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                stop(worker)
        _, workers = psutil.wait_procs(workers, timeout=_PATIENCE)
    left = "its process is gone: stopped with the sweep, or killed, as where memory runs out; the same command goes on"
    for job in folder.jobs(record.started):
        if job.status == "running":
            folder.write_job(replace(job, status="failed", ended=time.time(), error=left))
            for place in places_of_runs(runs_folder / "points" / str(job.identity)):
                with suppress(Timeout), FileLock(place / LOCK).acquire(timeout=0):
                    tracking.close(runs_folder, place, left)


def _close(run: Run, folder: SweepFolder, record: SweepRecord, error: Exception | None) -> None:
    jobs = folder.jobs(record.started)
    if error is None or len(jobs) >= record.points:
        folder.write(replace(record, ended=time.time()))
    _summarise(jobs, record)
    failed = [job for job in jobs if job.status == "failed"]
    finished = sum(job.status == "finished" for job in jobs)
    run.describe(f"{finished} of {record.points} points finished, {len(failed)} failed")
    if failed:
        reason = f"{len(failed)} of {record.points} jobs failed: {', '.join(job.name for job in failed)}"
        run.finish("FAILED", reason)
        # What Hydra stopped at outside of any job has not been said.
        own = error.problems if isinstance(error, ExperimentError) and not isinstance(error, JobFailedError) else []
        raise SweepFailedError([*own, f"{reason}; what they say stands above"]) from error
    if error is not None:
        run.finish("FAILED", sentence(error))


def _summarise(jobs: list[JobRecord], record: SweepRecord) -> None:
    finished = [job for job in jobs if job.status == "finished"]
    new = sum(job.new for job in finished)
    # Where the records and the runs are is not to be found in the records.
    places = [text for text in record.overrides if text.startswith(("paths.runs=", "tracking=", "tracking."))]
    compare = ["python", "pipelines/compare.py", f"sweep={record.identity}", *places]
    hint = f"; compare them: {shlex.join(compare)}" if finished else ""
    print(
        f"sweep {record.identity} ({record.name}): {len(finished)} of {record.points} points finished, {new} of them "
        f"trained now{hint}",
        file=sys.stderr,
    )


@contextmanager
def _job_environment(folder: SweepFolder) -> Iterator[None]:
    """The environment of the jobs says which sweep they are of, and whom they must not outlive."""
    variables = {FOLDER_VARIABLE: str(folder.path), LEADER_VARIABLE: this_process()}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _one_leader(folder: SweepFolder) -> Iterator[None]:
    """Refuse a second leader of the same sweep: two would write contradictory records."""
    lock = FileLock(folder.path / LOCK)
    try:
        held = lock.acquire(timeout=0)
    except Timeout:
        raise ExperimentError(
            f"the sweep {folder.path.name} is running already; wait for it, or stop it first"
        ) from None
    with held:
        yield


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the sweep as Ctrl-C does, so that its run is closed and its workers are stopped."""

    def end(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
