"""Gain of parallel jobs: the same sweep sequentially, and with several workers.

    python benchmarks/sweeping.py [--points 8] [--steps 600] [--workers 2] [--rounds 1]

Time is the clock's, from the command to its end, for that is what workers save. A machine gives two
processes less than twice what it gives one, all the less where its processors share a core: that is
measured in the same round, by processes that do nothing but matrix products, and stands beside.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time

from arguments import at_least_one
from configuration import WORK
from process_cost import limit_threads
from results import Row, report
from running import run_attnlab

PLACE = WORK / "sweeping"
# Small enough for a processor's cache, as the products of a small model are.
ALONE = """
import torch
torch.set_num_threads(1)
rows, weight = torch.randn(64, 256), torch.randn(256, 1024)
for _ in range({products}):
    rows @ weight
"""


def sweep(points: int, steps: int, *overrides: str) -> float:
    """Seconds by the clock of a sweep over seeds, on data that are prepared already."""
    shutil.rmtree(PLACE / "runs", ignore_errors=True)
    start = time.perf_counter()
    run_attnlab(
        "train.py",
        "-m",
        f"seed={','.join(str(seed) for seed in range(1, points + 1))}",
        f"training.max_steps={steps}",
        f"paths.runs={PLACE / 'runs'}",
        f"paths.data={PLACE / 'data'}",
        "sweep=grid",
        *overrides,
    )
    return time.perf_counter() - start


def machine(workers: int, products: int = 60_000) -> float:
    """How many times the products of one process that many processes at once get done."""
    command = [sys.executable, "-c", ALONE.format(products=products)]

    def at_once(processes: int) -> float:
        start = time.perf_counter()
        running = [subprocess.Popen(command) for _ in range(processes)]
        for process in running:
            process.wait()
        return time.perf_counter() - start

    return workers * at_once(1) / at_once(workers)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=at_least_one, default=8)
    parser.add_argument("--steps", type=at_least_one, default=600, help="of each training")
    parser.add_argument("--workers", type=at_least_one, default=2)
    parser.add_argument("--rounds", type=at_least_one, default=1)
    args = parser.parse_args()
    limit_threads()
    run_attnlab("prepare.py", f"paths.data={PLACE / 'data'}", f"paths.runs={PLACE / 'runs'}")
    rows: list[Row] = []
    for number in range(1, args.rounds + 1):
        serial = sweep(args.points, args.steps, "launcher=serial")
        parallel = sweep(
            args.points, args.steps, "launcher=joblib", f"launcher.workers={args.workers}"
        )
        rows.append(
            {
                "round": str(number),
                "serial, s": serial,
                f"{args.workers} workers, s": parallel,
                "times as fast": serial / parallel,
                "the machine's own": machine(args.workers),
            }
        )
    shutil.rmtree(PLACE, ignore_errors=True)
    medians = {
        name: statistics.median(float(row[name]) for row in rows)
        for name in rows[0]
        if name != "round"
    }
    notes = [
        f"{args.points} points of {args.steps} steps on generated dates, chain and tracking on"
    ]
    report("sweeping", [*rows, {"round": "median", **medians}], notes)


if __name__ == "__main__":
    main()
