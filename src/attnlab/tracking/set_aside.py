"""What a run still has to tell, moved out of the way of the same experiment's next run.

The record goes first, into a hidden folder, and the folder shows itself when all is there: a run is told from one
place or the other, but never from a half of it. A move that was begun is finished by the next process.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from attnlab.tracking.kept_run import KEPT, SET_ASIDE, KeptRun, keep, kept_folders, read
from attnlab.tracking.outbox import LATER_METRICS, OUTBOX
from attnlab.tracking.retention import SCORES
from attnlab.tracking.run import DELIVERED, RUN_FILE
from attnlab.training.spool import SPOOL_NAME

# What a run is told from, beside its record.
_TOLD_FROM = (SPOOL_NAME, LATER_METRICS, OUTBOX, SCORES, "model", DELIVERED, RUN_FILE)


def set_aside(place: Path) -> None:
    """Move each run in the folder of an experiment or a sweep that has not told all to a folder of its own there.

    Raises:
        ExperimentError: a record is damaged.
    """
    finish_moves(place)
    for folder in kept_folders(place):
        kept = read(folder)
        if kept is None or not _has_to_tell(folder, kept) or folder.parent.name == SET_ASIDE:
            continue
        # No training goes on with it: all of its spool is safe to tell.
        if kept.status is None:
            last_seen = int((folder / KEPT).stat().st_mtime * 1000)
            keep(folder, status="KILLED", error="stopped before it was finished", up_to=None, ended=last_seen)
        else:
            keep(folder, up_to=None)
        hidden = place / SET_ASIDE / ("." + "-".join([str(kept.started), *folder.relative_to(place).parts]))
        hidden.mkdir(parents=True, exist_ok=True)
        os.replace(folder / KEPT, hidden / KEPT)
        _finish_move(place, hidden)


def finish_moves(place: Path) -> None:
    """Finish what a process that was killed began to set aside; whoever calls it holds the lock of the place."""
    for hidden in sorted((place / SET_ASIDE).glob(".*")):
        _finish_move(place, hidden)


def moves_to_finish(place: Path) -> bool:
    """Whether there are any."""
    return any((place / SET_ASIDE).glob(".*"))


def _finish_move(place: Path, hidden: Path) -> None:
    if not (hidden / KEPT).is_file():
        hidden.rmdir()  # nothing was moved yet
        return _remove_where_empty(hidden.parent)
    folder = place.joinpath(*hidden.name.split("-", 2)[1:])
    for name in _TOLD_FROM:
        if (folder / name).exists() and not (hidden / name).exists():
            os.replace(folder / name, hidden / name)
    new = hidden.with_name(hidden.name.removeprefix("."))
    os.replace(hidden, new)
    print(f"what the tracker was not told of an earlier run waits in {new}; pipelines/deliver.py tells it",
          file=sys.stderr)  # fmt: skip


def _has_to_tell(folder: Path, kept: KeptRun) -> bool:
    """Also where its process was killed, if it had measured anything."""
    measured = any((folder / name).is_file() for name in (SPOOL_NAME, LATER_METRICS))
    return kept.waits or (kept.status is None and measured)


def remove_told(folder: Path) -> None:
    """Remove a run that was set aside and has told all; any other is left as it is."""
    if folder.parent.name == SET_ASIDE:
        shutil.rmtree(folder)
        _remove_where_empty(folder.parent)


def _remove_where_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()
