"""The finished points of a sweep, best first by validation, and what the sweep's own run shows of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.files import read_own_record
from attnlab.sweeps.record import JobRecord
from attnlab.tracking.description import main_metrics
from attnlab.tracking.run_folder import DONE

MOST_ROWS = 20  # of the table; MLflow limits a description


@dataclass(frozen=True)
class RankedJob:
    """
    monitor: the metric that training monitored; quality: its best value.
    step: that the model is of.
    test: metrics of the test split, `test/bleu`, ...; empty where it was not evaluated.
    """

    job: JobRecord
    monitor: str
    quality: float
    higher_is_better: bool
    step: int
    test: dict[str, float]


def ranking(jobs: Iterable[JobRecord], runs_folder: Path) -> list[RankedJob]:
    """The finished jobs with a validation value, best first; of equal ones the first.

    Raises ExperimentError for a damaged file.
    """
    found = []
    for job in jobs:
        if job.status != "finished":
            continue
        done = _read(runs_folder / "points" / str(job.identity) / DONE)
        if done["quality"] is not None:
            path = Path(job.output) / "metrics.json"
            test = _read(path) if path.is_file() else {}
            measured = {f"test/{name}": value for name, value in test.items() if value is not None}
            monitor, is_higher = done.get("monitor", "validation/quality"), done["higher_is_better"]
            found.append(RankedJob(job, monitor, done["quality"], is_higher, done["step"], measured))
    return sorted(found, key=lambda each: -each.quality if each.higher_is_better else each.quality)


def as_markdown(ranked: Sequence[RankedJob]) -> str:
    """The best job, and a table of all with links to their runs; empty for no jobs."""
    if not ranked:
        return ""
    best, tested = ranked[0], list(main_metrics(ranked[0].test, "test"))
    lines = [
        f"**Best by validation:** {_link(best.job)}, {best.monitor} {best.quality:.4g}",
        "",
        f"| | run | {best.monitor} | {' | '.join(f'test/{name}' for name in tested)} |",
        f"|{' --- |' * (3 + len(tested))}",
    ]
    for place, each in enumerate(ranked[:MOST_ROWS], start=1):
        values = [each.quality, *(each.test.get(f"test/{name}") for name in tested)]
        shown = ("" if value is None else f"{value:.4g}" for value in values)
        lines.append(f"| {place} | {_link(each.job)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _link(job: JobRecord) -> str:
    return job.name if job.run_id is None else f"[{job.name}](runs:/{job.run_id})"


def _read(path: Path) -> dict[str, Any]:
    return read_own_record(path, dict[str, Any], "train it again with rerun=true")
