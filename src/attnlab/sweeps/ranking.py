"""The finished points of a sweep, best first by validation, and what the sweep's own run shows of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.files import read_own_record
from attnlab.sweeps.record import JobRecord
from attnlab.tracking.description import main_metrics
from attnlab.tracking.run_folder import DONE

MOST_ROWS = 20  # of the table; MLflow limits a description


class RankedJob(NamedTuple):
    """quality: the best value of the metric `monitor`; test: metrics of the test split, of the model of step `step`."""

    job: JobRecord
    monitor: str
    quality: float
    step: int
    test: dict[str, float]


def ranking(jobs: Iterable[JobRecord], runs_folder: Path) -> list[RankedJob]:
    """The finished jobs with a validation value, of equal ones the first. Raises ExperimentError for a damaged file."""
    found = []
    for job in jobs:
        done = _read(runs_folder / "points" / str(job.identity) / DONE) if job.status == "finished" else {}
        if (quality := done.get("quality")) is not None:
            path = Path(job.output) / "metrics.json"
            test = {f"test/{name}": value for name, value in _read(path).items() if value is not None}
            ranked = RankedJob(job, done.get("monitor", "validation/quality"), quality, done["step"], test)
            found.append((-quality if done["higher_is_better"] else quality, ranked))
    return [ranked for _, ranked in sorted(found, key=lambda each: each[0])]


def as_markdown(ranked: Sequence[RankedJob]) -> str:
    """The best job, and a table of all with links to their runs; empty for no jobs."""
    if not ranked:
        return ""
    best, columns = ranked[0], [f"test/{name}" for name in main_metrics(ranked[0].test, "test")]
    # Words that wrap: a wide table widens the column of the page that it stands in.
    names = [" ".join(name.split("/")[:: name.count("/") or 1]) for name in (best.monitor, *columns)]
    rows = [["", "run", *names], ["---"] * (3 + len(columns))]
    for place, each in enumerate(ranked[:MOST_ROWS], start=1):
        values = [each.quality, *(each.test.get(name, float("nan")) for name in columns)]
        rows.append([str(place), _link(each.job), *(f"{value:.4g}" for value in values)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"**Best by validation:** {_link(best.job)}, {best.monitor} {best.quality:.4g}\n\n{table}"


def _link(job: JobRecord) -> str:
    return job.name if job.run_id is None else f"[{job.name}](runs:/{job.run_id})"


def _read(path: Path) -> dict[str, Any]:
    return read_own_record(path, dict[str, Any], "train it again with rerun=true") if path.is_file() else {}
