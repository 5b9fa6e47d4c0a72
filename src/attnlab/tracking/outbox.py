"""What waits in the experiment's folder for its delivery: files as they shall lie among the run's artifacts, and the
metrics of after the training."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from attnlab.files import atomic_file, atomic_folder
from attnlab.training.spool import MetricSpool

OUTBOX = "outbox"
LATER_METRICS = "later_metrics.jsonl"


def later_metrics(point: Path) -> MetricSpool:
    """The metrics of after the training."""
    return MetricSpool(point / LATER_METRICS, "remove it, and evaluate again")


def keep_metrics(point: Path, metrics: Mapping[str, float], step: int, epoch: int | None) -> bool:
    """Write down metrics of after the training; False where they all were there before."""
    later = later_metrics(point)
    records, _ = later.read()
    before = {(record.step, name): value for record in records for name, value in record.metrics.items()}
    new = {name: value for name, value in metrics.items() if before.get((step, name)) != value}
    if new:
        later.append(new, step, epoch)
        later.close()
    return bool(new)


def keep_artifact(point: Path, path: Path, folder: str) -> None:
    """Copy a file, or a folder with all it holds."""
    place = point / OUTBOX / folder / path.name
    if path.is_dir():
        with atomic_folder(place) as temporary:
            shutil.copytree(path, temporary, dirs_exist_ok=True)
    else:
        with atomic_file(place) as temporary:
            shutil.copyfile(path, temporary)
