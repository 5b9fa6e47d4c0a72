"""The counters that a training of attnlab writes beside its metrics."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from attnlab.training.spool import SPOOL_NAME


def newest_point(runs: Path) -> Path:
    """The folder of the experiment under `paths.runs` that was trained last.

    Raises SystemExit if no training is finished.
    """
    done = [path.parent for path in (runs / "points").glob("*/done.json")]
    if not done:
        sys.exit(f"{runs} must be the paths.runs of a finished training; it contains no training")
    return max(done, key=lambda folder: (folder / SPOOL_NAME).stat().st_mtime)


def counters(point: Path) -> list[dict[str, Any]]:
    """The records of speed and memory, each with its `epoch`.

    The epoch is logged with the metrics of the same step.
    """
    records = [
        json.loads(line) for line in (point / SPOOL_NAME).read_text(encoding="utf-8").splitlines()
    ]
    epochs = {record["step"]: record["epoch"] for record in records if record["epoch"] is not None}
    counted = [record for record in records if "time/training_cpu_seconds" in record["metrics"]]
    return [{**record, "epoch": epochs.get(record["step"], record["epoch"])} for record in counted]
