"""Verdicts on the points of a sweep: a tag of each run, by what their comparison found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import Timeout

from attnlab.errors import ExperimentError
from attnlab.locks import lock
from attnlab.runs.run import Run, Uploader
from attnlab.runs.run_folder import places_of_runs
from attnlab.runs.sweep_record import LOCK, JobRecord, SweepFolder


def set_verdicts(
    folder: SweepFolder, runs_folder: Path, verdicts: Mapping[str, str], uploader: Uploader | None
) -> None:
    """Set the verdict of each point's run, and remove that of a point without one.

    After an upload that failed, the others wait on disk. A run that another process works on, or
    that another sweep has taken over, keeps what it has.

    verdicts: {name of a point: its verdict}.
    uploader: None writes to the disk alone.
    """
    identity = folder.path.name
    for job in folder.jobs():
        # A damaged file is reported by whoever reads it next.
        with suppress(Timeout, ExperimentError), _locked_run(job, runs_folder, uploader) as run:
            if run is None or run.state.record.sweep != identity:
                continue
            run.change(verdict=verdicts.get(job.name))
            if run.pending:
                run.upload_new()
            if run.pending:
                uploader = None


@contextmanager
def _locked_run(
    job: JobRecord, runs_folder: Path, uploader: Uploader | None
) -> Iterator[Run | None]:
    """The run of a job, which no other process changes meanwhile; None where it has none.

    Raises Timeout where another process works on it.
    """
    home = runs_folder / "points" / str(job.identity)
    place = _place_of(job, home)
    if place is None:
        yield None
        return
    with ExitStack() as held:
        # An evaluation with another search has a lock of its own.
        for each in {home, place}:
            held.enter_context(lock(each / LOCK).acquire(timeout=0))
        yield Run.read(place, uploader)


def _place_of(job: JobRecord, home: Path) -> Path | None:
    """The folder of a job's run in that of its experiment; None where it has none."""
    if job.run_id is None:
        return None
    for place in places_of_runs(home):
        run = Run.read(place)
        if run is not None and run.run_id == job.run_id:
            return place
    return None
