"""One job of a sweep, in the process that runs it, which does not outlive what started it."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from attnlab.config.names import readable_name
from attnlab.errors import masked
from attnlab.project import CONF
from attnlab.runs.run_folder import PARENT_TAG, SWEEP_TAG
from attnlab.runs.sweep_claims import PointHeldError
from attnlab.runs.sweep_record import (
    OUTPUT,
    JobRecord,
    SweepFolder,
    SweepRecord,
    choices_of,
)

# Environment variables that the first process sets for its workers, wherever they run.
FOLDER_VARIABLE, LEADER_VARIABLE = "ATTNLAB_SWEEP", "ATTNLAB_SWEEP_LEADER"

_WATCH_INTERVAL = 1.0  # seconds
_SHELLS = ("sh", "bash", "dash", "zsh", "fish")
_JOB: ContextVar[SweepJob | None] = ContextVar("job", default=None)


class SweepJob:
    """What a job says of itself while it runs; each call is on disk when it returns.

    waits: where another process works on its point; else it raises PointHeldError.
    """

    def __init__(
        self, folder: SweepFolder, sweep: SweepRecord, record: JobRecord, waits: bool
    ) -> None:
        self.sweep, self.record, self.waits = sweep, record, waits
        self._folder = folder
        folder.write_job(record)

    def update(self, **found: Any) -> None:
        """Set fields of the `JobRecord`, and write it."""
        self.record = replace(self.record, **found)
        self._folder.write_job(self.record)

    @property
    def tags(self) -> dict[str, str]:
        """Of the run in the tracker."""
        parent = {} if self.sweep.run_id is None else {PARENT_TAG: self.sweep.run_id}
        return {SWEEP_TAG: self.sweep.identity, **parent}


def led_sweep() -> SweepFolder | None:
    """The sweep that this process leads, or that it is a worker of; None where there is none."""
    path = os.environ.get(FOLDER_VARIABLE)
    return None if path is None else SweepFolder(Path(path))


def current_job() -> SweepJob | None:
    """The job that this process runs; None outside of sweeps."""
    return _JOB.get()


@contextmanager
def running(
    number: int,
    overrides: Sequence[str],
    output: Path,
    config: Mapping[str, Any],
    folders: tuple[Path, ...] = (CONF,),
    waits: bool = True,
) -> Iterator[SweepJob | None]:
    """Run a job of a sweep: `with running(...) as job`.

    The record of the job ends as finished or, where something is raised, as failed; as stopped
    where that comes from a signal, and as held where it is PointHeldError.

    config: of what the job runs, composed, not checked yet.
    folders: of configs, that it was composed of.
    waits: see `SweepJob`.

    Yields None where no sweep's first process leads. What the job prints goes to
    `output/output.log`.
    """
    if FOLDER_VARIABLE not in os.environ:
        yield None
        return
    if LEADER_VARIABLE in os.environ:
        exit_with(os.environ[LEADER_VARIABLE])
    folder = SweepFolder(Path(os.environ[FOLDER_VARIABLE]))
    sweep = folder.read()
    choices = choices_of(overrides, sweep.varies)
    name = readable_name(config, choices, folders)
    now = time.time()
    record = JobRecord(
        number, name, choices, list(overrides), "running", sweep.started, now, str(output)
    )
    job = SweepJob(folder, sweep, record, waits)
    _make_name_distinct(job, folder)
    token = _JOB.set(job)
    try:
        with _output_to(output / OUTPUT):
            yield job
    except PointHeldError:
        job.update(status="held")
        raise
    except BaseException as error:
        if not _is_queued_again(error):
            signal_name = _stopping_signal(error)
            if signal_name is None:
                job.update(status="failed", ended=time.time(), error=error_sentence(error))
            else:
                reason = f"stopped by {signal_name}; the same command goes on"
                job.update(status="stopped", ended=time.time(), error=reason)
        raise
    else:
        job.update(status="finished", ended=time.time())
    finally:
        _JOB.reset(token)


def sweep_of_job_without_leader() -> SweepFolder | None:
    """The sweep that this process has run a job of, where no process need lead it."""
    return None if LEADER_VARIABLE in os.environ else led_sweep()


def shared_sweep() -> SweepFolder | None:
    """The sweep that this process runs a job of, where its jobs may exchange their points.

    None where the jobs run in the leader itself, or a sweeper waits for the result of each point.
    """
    led = led_sweep()
    if led is None or os.environ.get(LEADER_VARIABLE) == this_process():
        return None
    return led if led.has_points() else None


def _stopping_signal(error: BaseException) -> str | None:
    """`Ctrl-C` or `SIGTERM`, whose signal ended a job in this way; None for other errors."""
    if isinstance(error, KeyboardInterrupt):
        return "Ctrl-C"
    if not isinstance(error, SystemExit) or not isinstance(error.code, int):
        return None
    try:
        number = signal.Signals(error.code - 128)
    except ValueError:
        return None
    return "Ctrl-C" if number == signal.SIGINT else number.name


def _is_queued_again(error: BaseException) -> bool:
    """Whether Slurm will run this job again, since it reached its time limit or had to make room.

    Submitit's handler has had it queued, and then ends the process in this way.
    """
    is_of_submitit = "SUBMITIT_EXECUTOR" in os.environ
    return is_of_submitit and isinstance(error, SystemExit) and error.code == -1


def _make_name_distinct(job: SweepJob, folder: SweepFolder) -> None:
    """Give the point a name, as it appears in MLflow, that no other point has.

    Points that still share a name, since they differ in a digit that it leaves out, get their
    numbers. The job's record is written before the others are read: of two jobs that start together
    at least one sees the other.
    """
    name, number = job.record.name, job.record.number
    if any(other.name == name and other.number != number for other in folder.jobs()):
        job.update(name=f"{name} · point {number}")


def error_sentence(error: BaseException) -> str:
    """An error as a person reads it, without secrets."""
    problems: Sequence[str] | None = getattr(error, "problems", None)
    return masked(
        "; ".join(problems) if problems else f"{type(error).__name__}: {error}".rstrip(": ")
    )


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Send what this process and its children print to a file.

    Where a signal stops the block, its last line goes to the terminal as well: it says what was
    saved.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    terminal = os.dup(1), os.dup(2)
    with path.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        is_stopped = False
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            is_stopped = True
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for old, new in zip(terminal, (1, 2), strict=True):
                os.dup2(old, new)
                os.close(old)
            if is_stopped:
                last_lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
                print(*last_lines, sep="\n", file=sys.stderr)


# A process that is killed by SIGKILL cannot end those that it started: they watch it.


def this_process() -> str:
    """A process in words that another one can find it by, `host pid birth`."""
    return _words(psutil.Process())


def starting_process() -> str:
    """The process that started this one, a shell between them not counted."""
    parent = psutil.Process().parent()
    above = parent.parent() if parent is not None and parent.name() in _SHELLS else None
    return _words(above or parent or psutil.Process())


def _words(process: psutil.Process) -> str:
    return f"{platform.node()} {process.pid} {process.create_time()!r}"


def exit_with(process: str) -> None:
    """End this process and its children when another process of this machine is gone.

    Returns at once.
    """
    host, pid, birth = process.rsplit(" ", 2)
    watched = int(pid), float(birth)
    name = f"watch process {pid}"
    is_watched = any(thread.name == name for thread in threading.enumerate())
    if host == platform.node() and watched[0] != os.getpid() and not is_watched:
        threading.Thread(target=_watch, args=watched, name=name, daemon=True).start()


def _watch(pid: int, birth: float) -> None:
    while _lives(pid, birth):
        time.sleep(_WATCH_INTERVAL)
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
    os._exit(128 + signal.SIGKILL)


def _lives(pid: int, birth: float) -> bool:
    """Whether it is there and no zombie; a number may belong to another process by now."""
    try:
        found = psutil.Process(pid)
        # The time of birth counts from the machine's start, which clock corrections move a little.
        return abs(found.create_time() - birth) < 2 and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
