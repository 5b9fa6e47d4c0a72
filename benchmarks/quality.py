"""Quality against processor time: BLEU on the test sentences after whole runs, for several seeds.

    python benchmarks/quality.py --data <folder with Multi30k, tokenised>
        [--experiment multi30k_vaswani] [--epochs 5 9] [--seeds 1 2 3]

A run is what a user types, `train.py experiment=multi30k_bahdanau` with another number of epochs:
it prepares the data, trains, validates, decodes the test sentences with a beam of 5, and writes its
report. All of that is in the time.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from arguments import at_least_one, corpus_parser
from configuration import WORK
from process_cost import limit_threads
from results import Row, report
from running import run_attnlab


def run(experiment: str, data: Path, epochs: int, seed: int, overrides: list[str]) -> Row:
    folder = WORK / "quality" / experiment / f"{epochs}-{seed}"
    cost, _ = run_attnlab(
        "train.py",
        f"experiment={experiment}",
        f"data.path={data.resolve()}",
        f"paths.runs={folder}",
        f"hydra.run.dir={folder / 'output'}",
        f"training.max_epochs={epochs}",
        f"seed={seed}",
        "rerun=true",
        *overrides,
    )
    metrics = json.loads((folder / "output" / "metrics.json").read_text(encoding="utf-8"))
    found: Row = {
        "epochs": epochs,
        "seed": str(seed),
        "BLEU": metrics["bleu"],
        "CPU minutes": cost.cpu_seconds / 60,
        "peak MB": cost.peak_megabytes,
    }
    # A run takes half an hour
    print(", ".join(f"{name} {value}" for name, value in found.items()), flush=True)
    return found


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument(
        "--experiment", default="multi30k_bahdanau", help="the preset, as experiment of train.py"
    )
    parser.add_argument("--epochs", type=at_least_one, nargs="+", default=[5, 9])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "overrides", nargs="*", help="of the experiment, such as training.label_smoothing=0.1"
    )
    args = parser.parse_args()
    limit_threads()
    rows: list[Row] = []
    for epochs in args.epochs:
        ours = [
            run(args.experiment, args.data, epochs, seed, args.overrides) for seed in args.seeds
        ]
        mean = {
            name: statistics.mean(float(row[name]) for row in ours)
            for name in ("BLEU", "CPU minutes", "peak MB")
        }
        rows += [*ours, {"epochs": epochs, "seed": "mean", **mean}]
    words = " ".join(args.overrides) or "none"
    report(
        "quality",
        rows,
        [
            f"experiment={args.experiment}",
            "BLEU as attnlab signs it (tok:none), beam 5, 1,000 test sentences",
            f"overrides: {words}",
        ],
    )


if __name__ == "__main__":
    main()
