"""One job of a sweep, in the process that runs it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.errors import masked
from attnlab.sweeps.naming import choices_of, name_of
from attnlab.sweeps.outliving import end_with
from attnlab.sweeps.record import JobRecord, SweepFolder, SweepRecord

# Environment variables that the first process sets for its workers, wherever they run.
FOLDER_VARIABLE, LEADER_VARIABLE = "ATTNLAB_SWEEP", "ATTNLAB_SWEEP_LEADER"

_current: SweepJob | None = None


class SweepJob:
    """What a job says of itself while it runs; each call is on disk when it returns."""

    def __init__(self, folder: SweepFolder, sweep: SweepRecord, record: JobRecord) -> None:
        self.sweep, self.record = sweep, record
        self._folder = folder
        before = folder.job(record.number)
        # A try that failed before its experiment was known has a run that this one takes over.
        orphaned = before is not None and before.identity is None and before.choices == record.choices
        self.run_to_adopt = before.run_id if before is not None and orphaned else None
        folder.write_job(record)

    def update(self, **found: Any) -> None:
        """Set fields of the `JobRecord`, and write it."""
        self.record = replace(self.record, **found)
        self._folder.write_job(self.record)

    @property
    def state(self) -> Path:
        """A folder for what a job keeps before its experiment has one."""
        path = self._folder.path / "jobs" / str(self.record.number)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def tags(self) -> dict[str, str]:
        """Of the run in the tracker."""
        tags = {"sweep": self.sweep.identity}
        if self.sweep.run_id is not None:
            tags["mlflow.parentRunId"] = self.sweep.run_id
        return tags


def current_job() -> SweepJob | None:
    """The job that this process runs; None outside of sweeps."""
    return _current


@contextmanager
def running(number: int, overrides: Sequence[str], output: Path) -> Iterator[SweepJob | None]:
    """Run a job: `with running(...) as job`. Its record ends as finished or, where something is raised, as failed.

    Gives None where no sweep's first process leads. What the job prints goes to `output/output.log` where many run
    beside each other.
    """
    global _current
    if FOLDER_VARIABLE not in os.environ:
        yield None
        return
    end_with(os.environ[LEADER_VARIABLE])
    folder = SweepFolder(Path(os.environ[FOLDER_VARIABLE]))
    sweep = folder.read()
    choices = choices_of(overrides, sweep.varies)
    record = JobRecord(
        number,
        name_of(choices),
        choices,
        list(overrides),
        "running",
        start_of_sweep=sweep.started,
        started=time.time(),
        output=str(output),
    )
    job = _current = SweepJob(folder, sweep, record)
    try:
        with _output_to(output / "output.log", sweep.quiet):
            yield job
    except BaseException as error:
        job.update(status="failed", ended=time.time(), error=sentence(error))
        raise
    else:
        job.update(status="finished", ended=time.time())
    finally:
        _current = None


def sentence(error: BaseException) -> str:
    """An error as a person reads it, without secrets."""
    problems: Sequence[str] | None = getattr(error, "problems", None)
    return masked("; ".join(problems) if problems else f"{type(error).__name__}: {error}".rstrip(": "))


@contextmanager
def _output_to(path: Path, wanted: bool) -> Iterator[None]:
    """Send what this process and its children print to a file."""
    if not wanted:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with path.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for old, new in zip(kept, (1, 2), strict=True):
                os.dup2(old, new)
                os.close(old)


def objective_values(wanted: Sequence[str], found: Mapping[str, float | None]) -> Any:
    """What Hydra's sweepers take: a number, or as many as there are objectives."""
    values = [found[name] for name in wanted]
    return values[0] if len(values) == 1 else tuple(values)
