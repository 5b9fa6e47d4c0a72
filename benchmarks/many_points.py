"""What a point of a large sweep costs beside its training, and how that grows.

    python benchmarks/many_points.py [--points 2000] [--tracker postgresql://user@/mlflow]

One process composes the points of a grid, and opens, describes and ends the run of each, as a sweep
does, but trains none. Without --tracker the runs go to a sqlite database of their own.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from arguments import at_least_one
from configuration import WORK
from process_cost import limit_threads
from results import Row, report
from running import run_attnlab

PLACE = WORK / "many_points"
RUNS, DATA = PLACE / "runs", PLACE / "data"
METRICS = {f"test/metric_{number}": number / 10 for number in range(20)}
STEPS = range(0, 500, 100)  # at which a training would have logged
PAGE = 100  # runs that MLflow's page asks for at once


def settings() -> Iterator[list[str]]:
    """Overrides of the points, as many as are wanted."""
    sizes = range(16, 10_000)
    for size, seed in product(sizes, (1, 2, 3, 4, 5)):
        yield [f"model.attention.size={size}", f"seed={seed}"]


def register(overrides: list[str]) -> dict[str, float]:
    """One point: the seconds of each of its parts, by the processor's clock."""
    from attnlab.data.prepared import PreparedData
    from attnlab.experiment.composition import compose
    from attnlab.experiment.run import open_run

    started = time.process_time()
    experiment = compose([*overrides, f"paths.runs={RUNS}", f"paths.data={DATA}"])
    composed = time.process_time()
    with open_run(experiment, PreparedData(DATA)) as run:
        opened = time.process_time()
        for step in STEPS:
            run.tracked.log_metrics(METRICS, step)
    ended = time.process_time()
    return {
        "compose": composed - started,
        "open": opened - composed,
        "log and end": ended - opened,
        "CPU-s a point": ended - started,
    }


def size_of(folder: Path) -> tuple[int, float]:
    """The files below a folder, and their megabytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes) / 1e6


def page_seconds(tracker: str) -> float:
    """Seconds by the clock that MLflow's page takes for the best runs of all."""
    from mlflow import MlflowClient

    client = MlflowClient(tracker)
    found = client.get_experiment_by_name("attnlab")
    assert found is not None
    started = time.perf_counter()
    client.search_runs(
        [found.experiment_id], order_by=["metrics.`test/metric_1` DESC"], max_results=PAGE
    )
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=at_least_one, default=2000)
    parser.add_argument("--tracker", help="the address of MLflow's server or database")
    args = parser.parse_args()
    limit_threads()
    shutil.rmtree(PLACE, ignore_errors=True)
    run_attnlab("prepare.py", "data=copy", f"paths.data={DATA}")
    tracker = args.tracker or f"sqlite:///{RUNS}/mlflow.db"
    of_tracker = [] if args.tracker is None else [f"tracking.uri={args.tracker}"]

    rows: list[Row] = []
    found: list[dict[str, float]] = []
    started = time.perf_counter()
    every = max(1, args.points // 4)
    for number, overrides in zip(range(1, args.points + 1), settings(), strict=False):
        found.append(register(["data=copy", *of_tracker, *overrides]))
        if number % every == 0 or number == args.points:
            files, megabytes = size_of(RUNS)
            row: Row = {"points": str(number)}
            row |= {name: statistics.mean(each[name] for each in found) for name in found[0]}
            row |= {
                "s a point": (time.perf_counter() - started) / len(found),
                "files": files,
                "MB": megabytes,
                "s of MLflow's page": page_seconds(tracker),
            }
            rows.append(row)
            print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
            found, started = [], time.perf_counter()
    kind = tracker.partition(":")[0]
    report(f"many_points_{kind}", rows, [f"{args.points} points, tracker {kind}"])


if __name__ == "__main__":
    main()
