"""Memory over a long training: usage after each epoch, and the peak.

    python benchmarks/memory.py --data <folder with Multi30k, tokenised>
        [--epochs 10] [--precision bf16 fp32]
    python benchmarks/memory.py --trained runs/benchmarks/quality/multi30k_bahdanau/9-1

Batches differ in their lengths from step to step, which tempts allocators and caches to grow: the
table says whether they do. attnlab trains through `pipelines/train.py`, Lightning and MLflow on; a
training that is done already, such as one of quality.py, shows the same in its records.
"""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

from arguments import at_least_one
from configuration import BAHDANAU, PRECISIONS, WORK
from given_text import prepared_text
from process_cost import Cost, limit_threads
from results import Row, report
from running import run_attnlab
from spool import counters, newest_point

HELD, PEAK = "system/resident_megabytes", "system/peak_training_megabytes"


def train(data: Path, epochs: int, precision: str) -> tuple[Path, Cost]:
    """The experiment's own folder and what the training cost."""
    runs = WORK / "memory" / precision
    cost, _ = run_attnlab(
        "train.py",
        *BAHDANAU,
        *PRECISIONS[precision],
        f"data.path={data.resolve()}",
        f"paths.runs={runs}",
        f"paths.data={prepared_text(data)[0]}",
        f"training.max_epochs={epochs}",
        "chain=false",
        "rerun=true",
    )
    return newest_point(runs), cost


def by_epoch(point: Path, name: str) -> list[Row]:
    """One line an epoch: what is held at its last record, and the most until then."""
    rows: list[Row] = []
    for epoch, records in groupby(counters(point), key=lambda record: record["epoch"]):
        last = list(records)[-1]["metrics"]
        rows.append(
            {"training": name, "epoch": epoch + 1, "holds MB": last[HELD], "peak MB": last[PEAK]}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="the corpus, as data.path of train.py")
    source.add_argument(
        "--trained", type=Path, help="train nothing: the paths.runs of a training that is done"
    )
    parser.add_argument("--epochs", type=at_least_one, default=10)
    parser.add_argument(
        "--precision", nargs="+", choices=list(PRECISIONS), default=[*PRECISIONS][-1:]
    )
    args = parser.parse_args()
    if args.trained:
        report(
            "memory",
            by_epoch(newest_point(args.trained), str(args.trained)),
            ["a training that was done before, on whatever machine that was"],
        )
        return
    limit_threads()
    rows: list[Row] = []
    for precision in args.precision:
        point, cost = train(args.data, args.epochs, precision)
        rows += by_epoch(point, precision)
        rows.append(
            {"training": precision, "epoch": "whole process", "peak MB": cost.peak_megabytes}
        )
    report("memory", rows)


if __name__ == "__main__":
    main()
