"""What a point of a large sweep costs beside its training, and how that grows.

    python benchmarks/many_points.py [--points 2000] [--tracker postgresql+psycopg2://user@/mlflow]

One process opens, describes and ends the run of each point of a grid, as a sweep does, but trains
none. It composes those anew that differ in more than their seed. Without --tracker the runs go to a
sqlite database of their own. With a server as the tracker, its requests are counted in place of the
rows of its database.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arguments import at_least_one
from configuration import WORK
from process_cost import limit_threads
from results import Row, report
from running import run_attnlab

if TYPE_CHECKING:
    from attnlab.tasks.task import Experiment

PLACE = WORK / "many_points"
RUNS, DATA = PLACE / "runs", PLACE / "data"
METRICS = {f"test/metric_{number}": number / 10 for number in range(20)}
STEPS = range(0, 500, 100)  # at which a training would have logged
SEEDS = range(1, 6)  # of each setting
PAGE = 100  # runs that MLflow's page asks for at once


def experiments(overrides: list[str]) -> Iterator[tuple[Experiment, float]]:
    """The points, as many as are wanted, with the seconds of their composition."""
    from attnlab.experiment.composition import compose

    places = [f"paths.runs={RUNS}", f"paths.data={DATA}"]
    for size in range(16, 10_000):
        started = time.process_time()
        experiment = compose([*overrides, *places, f"model.attention.size={size}"])
        composed = time.process_time() - started
        for seed in SEEDS:
            config, values = experiment.config | {"seed": seed}, experiment.values | {"seed": seed}
            yield replace(experiment, config=config, values=values, seed=seed), composed


def register(experiment: Experiment) -> dict[str, float]:
    """One point: the seconds of each of its parts, by the processor's clock."""
    from attnlab.data.prepared import PreparedData
    from attnlab.experiment.run import open_run

    started = time.process_time()
    with open_run(experiment, PreparedData(DATA)) as run:
        opened = time.process_time()
        for step in STEPS:
            run.tracked.log_metrics(METRICS, step)
    ended = time.process_time()
    return {"open": opened - started, "log and end": ended - opened}


def size_of(folder: Path) -> tuple[int, float]:
    """The files below a folder, and their megabytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes) / 1e6


def rows_of(tracker: str) -> Counter[str]:
    """The rows of each table of MLflow's database; empty for a server, which shows none."""
    from sqlalchemy import create_engine, inspect, text

    if tracker.startswith("http"):
        return Counter()
    engine = create_engine(tracker)
    with engine.connect() as connection:
        count = {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in inspect(engine).get_table_names()
        }
    engine.dispose()
    return Counter(count)


def database_megabytes(tracker: str) -> float | str:
    """The size of MLflow's database; empty for a server."""
    from sqlalchemy import create_engine, text

    if tracker.startswith("sqlite"):
        return (RUNS / "mlflow.db").stat().st_size / 1e6
    if tracker.startswith("http"):
        return ""
    engine = create_engine(tracker)
    with engine.connect() as connection:
        size = text("SELECT pg_database_size(current_database())")
        found = float(connection.execute(size).scalar_one()) / 1e6
    engine.dispose()
    return found


def count_requests() -> Counter[str]:
    """The requests by HTTP that this process sends from now on, by the last word of their path."""
    import requests

    sent: Counter[str] = Counter()
    send = requests.Session.send

    def counted(self: Any, request: Any, **settings: Any) -> Any:
        sent[request.path_url.partition("?")[0].rpartition("/")[2]] += 1
        return send(self, request, **settings)

    requests.Session.send = counted  # type: ignore[method-assign]
    return sent


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

    sent = count_requests()
    points = experiments(["data=copy", *of_tracker])
    register(next(points)[0])  # makes the database
    sent.clear()
    rows_before = rows_of(tracker)
    rows: list[Row] = []
    found: list[dict[str, float]] = []
    started = time.perf_counter()
    every = max(1, args.points // 4)
    for number, (experiment, composed) in zip(range(1, args.points + 1), points, strict=False):
        cost = {"compose": composed, **register(experiment)}
        found.append({**cost, "CPU-s a point": sum(cost.values())})
        if number % every == 0 or number == args.points:
            files, megabytes = size_of(RUNS)
            row: Row = {"points": str(number)}
            row |= {name: statistics.mean(each[name] for each in found) for name in found[0]}
            row |= {
                "s a point": (time.perf_counter() - started) / len(found),
                "files": files,
                "MB": megabytes,
                "MB of the database": database_megabytes(tracker),
                "peak MB of memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
                "requests a point": sent.total() / number,
                "s of MLflow's page": page_seconds(tracker),
            }
            rows.append(row)
            print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
            found, started = [], time.perf_counter()
    kind = tracker.partition(":")[0].partition("+")[0]
    notes = [f"{args.points} points, tracker {kind}"]
    for what, counts in (("rows", rows_of(tracker) - rows_before), ("requests", sent)):
        a_point = [f"{name} {n / args.points:.4g}" for name, n in counts.most_common() if n]
        if a_point:
            notes.append(f"{what} a point: {', '.join(a_point)}")
    report(f"many_points_{kind}", rows, notes)


if __name__ == "__main__":
    main()
