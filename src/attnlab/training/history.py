"""The learning curves as a table: what the spool holds, without its times."""

from __future__ import annotations

import csv
from pathlib import Path

from attnlab.files import atomic_file
from attnlab.training.spool import SPOOL_NAME, history


def write_history(point: Path, path: Path) -> None:
    """Write `step, epoch, name, value` rows; the same training gives the same bytes."""
    with atomic_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", "epoch", "name", "value"])
        writer.writerows(history(point / SPOOL_NAME))
