"""What a run still has to tell, moved out of the way of the same experiment's next run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from attnlab.tracking.kept_run import KEPT, SET_ASIDE, kept_folders, read
from attnlab.tracking.outbox import LATER_METRICS, OUTBOX
from attnlab.tracking.retention import SCORES
from attnlab.tracking.run import DELIVERED, RUN_FILE
from attnlab.training.spool import SPOOL_NAME

# What a run is told from. Its record is the last: killed before it is moved, the next try moves the rest.
_TOLD_FROM = (SPOOL_NAME, LATER_METRICS, OUTBOX, SCORES, "model", DELIVERED, RUN_FILE, KEPT)


def waits(folder: Path) -> bool:
    """Whether there is a run here that has ended, has something to tell, and has not told it."""
    kept = read(folder)
    return kept is not None and kept.waits and kept.up_to != 0


def set_aside(place: Path) -> None:
    """Move each run in the folder of an experiment or a sweep that has not told all to a folder of its own there.

    Raises:
        ExperimentError: a record is damaged.
    """
    for folder in kept_folders(place):
        kept = read(folder)
        if kept is None or not kept.waits or folder.parent.name == SET_ASIDE:
            continue
        new = place / SET_ASIDE / "-".join([str(kept.started), *folder.relative_to(place).parts])
        new.mkdir(parents=True, exist_ok=True)
        for name in _TOLD_FROM:
            if (folder / name).exists():
                os.replace(folder / name, new / name)
        print(f"what the tracker was not told of an earlier run waits in {new}; pipelines/deliver.py tells it",
              file=sys.stderr)  # fmt: skip


def remove_told(folder: Path) -> None:
    """Remove a run that was set aside and has told all; any other is left as it is."""
    if folder.parent.name == SET_ASIDE:
        shutil.rmtree(folder)
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()
