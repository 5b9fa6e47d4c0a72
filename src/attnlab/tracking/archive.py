"""Runs in the folder of an experiment or a sweep: found, closed, reset, and archived to make room for a rerun."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from attnlab.errors import ExperimentError
from attnlab.tracking.run_folder import ARCHIVE, MODEL, STATE, SYSTEM_METRICS, UPLOADED, Run, Upload, read_state
from attnlab.training.spool import RUN_FOLDER, SPOOL_NAME

# Where the folder of an experiment or a sweep has runs: its own, those of evaluations with another search, those of
# jobs that failed before their experiment had a folder, and pending ones of before a rerun.
_PLACES = ("", "evaluations/*/", "jobs/*/", f"{ARCHIVE}/*/")


def places_of_runs(place: Path) -> list[Path]:
    """The folders below that of an experiment or a sweep, and it itself, that have a run."""
    return [path.parents[1] for inside in _PLACES for path in sorted(place.glob(f"{inside}{RUN_FOLDER}/{STATE}"))]


def experiments_and_sweeps(runs_folder: Path) -> list[Path]:
    """Their folders; in each lies the lock of the process that works there."""
    return sorted(path for path in (*runs_folder.glob("points/*"), *runs_folder.glob("sweeps/*")) if path.is_dir())


def reset_without_checkpoint(place: Path) -> bool:
    """Whether the run of a place came to no checkpoint; then it is reset, and only its id in MLflow stays."""
    state, path = read_state(place), place / RUN_FOLDER / UPLOADED
    uploaded = Run(place, state).uploaded if state is not None else None
    if state is not None and (state.safe_offset != 0 or (uploaded and Path(SPOOL_NAME).name in uploaded.spools)):
        return False
    for other in path.parent.iterdir() if path.parent.is_dir() else ():
        if other.name not in (UPLOADED, SYSTEM_METRICS):
            shutil.rmtree(other) if other.is_dir() else other.unlink()
    return True


def close_killed(place: Path, error: str, upload: Upload | None = None) -> None:
    """Close the run of a place whose process was killed; one that has ended stays as it is."""
    run = Run.read(place, upload)
    if run is not None and run.state.status is None:
        run.finish("KILLED", error)


def archive(place: Path, upload: Upload | None = None) -> None:
    """Make room for new runs in the folder of an experiment or a sweep, whose lock is held.

    Runs whose processes were killed are closed. What MLflow lacks of a run is uploaded, where `upload` is given and
    succeeds; otherwise the run is moved to a folder of its own, for pipelines/deliver.py.

    Raises:
        ExperimentError: the state of a run is damaged.
    """
    for inside in places_of_runs(place):
        run = Run.read(inside)
        if run is None or inside.parent.name == ARCHIVE:
            continue
        if run.state.status is None and (run.uploaded is not None or run.measured()):
            run.close("KILLED", "stopped before it was finished")
        if run.pending:
            run.release()
            try:
                problem = upload(run) if upload is not None else None
            except ExperimentError as damage:
                problem = str(damage)
            else:
                upload = upload if problem is None else None  # a tracker that is away is not asked for each run
            if problem is not None:
                print(f"warning: {problem}", file=sys.stderr)
        if run.pending:
            _move_to_archive(run, place)
        else:
            (run.folder / STATE).unlink()  # first, so that a half removed run is not taken for a pending one


def _move_to_archive(run: Run, place: Path) -> None:
    """The last step moves all of it at once: a process that is killed leaves the run in one place or the other."""
    name = "-".join([str(run.state.started), *run.place.relative_to(place).parts])
    new = place / ARCHIVE / name
    new.mkdir(parents=True, exist_ok=True)
    if run.model == run.place / MODEL:
        os.replace(run.place / MODEL, run.folder / MODEL)
    os.replace(run.folder, new / RUN_FOLDER)
    print(f"an earlier run that MLflow lacks is now in {new}; pipelines/deliver.py uploads it", file=sys.stderr)


def remove_archived(place: Path) -> None:
    """Remove an archived run, and the archive when it is empty; any other run stays."""
    if place.parent.name == ARCHIVE:
        shutil.rmtree(place)
        if not any(place.parent.iterdir()):
            place.parent.rmdir()
