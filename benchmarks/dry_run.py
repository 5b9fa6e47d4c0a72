"""How right a dry run is: ten different experiments, estimated and then run.

    python benchmarks/dry_run.py --data <folder with multi30k, korean_chatbot, ...>

By the clock, each command in a process of its own, in a folder where nothing is prepared. Minutes
are those from the start of the command to the metrics of the test split, memory is the peak since
training started.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from configuration import ROOT
from results import Row, report
from spool import counters, newest_point

SHORT = "data.limit=6000"
EXPERIMENTS = {
    "the demo's": [],
    "dot": ["model/attention=dot", "training.max_steps=800"],
    "no attention": ["model/attention=none", "model/decoder=no_attention", "model/readout=state"],
    "general, fed": [
        "model/attention=general",
        "model/decoder=step_then_attend",
        "model/readout=attentional",
        "model/input_feeding=attentional_hidden",
    ],
    "LSTM of 128": [
        "model/encoder=lstm",
        "model.encoder.hidden_size=128",
        "model.decoder.hidden_size=256",
        "training.max_steps=300",
    ],
    "coverage, half its own tokens": [
        "model/history=coverage",
        "training.teacher_forcing.ratio=0.5",
    ],
    "copy, beam of 10": [
        "data=copy",
        "data.num_pairs=20000",
        "search.size=10",
        "training.max_steps=1000",
    ],
    "reverse, greedy, epochs": [
        "data=reverse",
        "data.num_pairs=20000",
        "search=greedy",
        "training.max_steps=null",
        "training.max_epochs=4",
    ],
    "Multi30k": [
        "experiment=multi30k_small",
        "data.path={data}/multi30k",
        SHORT,
        "training.max_epochs=2",
    ],
    "classification": [
        "experiment=korean_chatbot",
        "data.path={data}/korean_chatbot",
        "training.max_epochs=3",
    ],
}
ONE = """
import json, psutil
from dataclasses import asdict
from attnlab.experiment.user_errors import ENVIRONMENT
import os, sys
os.environ.update(ENVIRONMENT)
from attnlab.experiment.composition import compose
from attnlab.experiment.dry_run import estimate
print(json.dumps(asdict(estimate(compose(sys.argv[1:]), psutil.Process().create_time()))))
"""


def run(folder: str, *command: str) -> str:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def compared(name: str, overrides: list[str]) -> Row:
    with tempfile.TemporaryDirectory(prefix="attnlab-dry-") as folder:
        guess = json.loads(run(folder, "-c", ONE, *overrides).splitlines()[-1])
        run(folder, str(ROOT / "pipelines" / "train.py"), *overrides)
        point = newest_point(Path(folder) / "runs")
        later = [
            json.loads(line)
            for line in (point / "run" / "later_metrics.jsonl").read_text().splitlines()
        ]
        minutes = next(
            each["metrics"]["time/minutes"] for each in later if "time/minutes" in each["metrics"]
        )
        memory = counters(point)[-1]["metrics"]["system/peak_training_megabytes"]
    return {
        "experiment": name,
        "minutes, estimated": guess["minutes"],
        "minutes": minutes,
        "estimated / real minutes": guess["minutes"] / minutes,
        "memory, estimated, MB": guess["megabytes"],
        "memory, MB": memory,
        "estimated / real memory": guess["megabytes"] / memory,
    }


def main(data: Path) -> None:
    rows = []
    for name, changes in EXPERIMENTS.items():
        rows.append(compared(name, [change.format(data=data.resolve()) for change in changes]))
        print(rows[-1], file=sys.stderr)
    report("dry_run", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    main(parser.parse_args().data)
