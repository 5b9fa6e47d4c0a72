"""Measure the models of the course with several seeds: the table in docs/lesson_models.md.

    python docs/make_lesson_models.py             # all of them, and writes the table
    python docs/make_lesson_models.py dot luong   # prints the rows of some

Each model is a sweep over the seeds, trained and evaluated as `python pipelines/train.py -m ...`
does it. What was trained before is not trained again.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import torch
from measured_page import revision, write_measured
from safetensors.torch import load_file

from attnlab.course.models import MODELS, UNTRACKED, known
from attnlab.evaluation.evaluation_files import read_history, read_json
from attnlab.evaluation.measures import CPU_SECONDS
from attnlab.runs.sweep_record import LAST, JobRecord, find_sweep

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "lesson_models.md"
RUNS = ROOT / "runs"
SEEDS = (1, 2, 3)
HEAD = (
    "| model | parameters | CPU seconds | validation | kept step | test | AER |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)


@dataclass(frozen=True)
class Measured:
    """A model of one seed.

    validation, test: the share that is right: exact match of sentences, accuracy of labels.
    step: of the weights that were kept, by the validation.
    aer: None where there are no gold links, or no attention.
    """

    parameters: int
    cpu_seconds: float
    validation: float
    step: int
    test: float
    aer: float | None


def measure(model: str) -> list[Measured]:
    """Train a model with each of the seeds, where it is not trained yet."""
    seeds = ",".join(map(str, SEEDS))
    train = ["pipelines/train.py", "-m", *MODELS[model], f"seed={seeds}", *UNTRACKED]
    subprocess.run([sys.executable, *train], cwd=ROOT, check=True, stdout=sys.stderr)
    jobs = find_sweep(RUNS, LAST).jobs()
    assert all(job.status == "finished" for job in jobs), model
    return [_measured(job) for job in jobs]


def _measured(job: JobRecord) -> Measured:
    point = RUNS / "points" / str(job.identity)
    done = read_json(point / "done.json", "train")
    history = read_history(point / "training" / "history.csv")
    metrics = read_json(Path(job.output) / "evaluation" / "metrics.json", "evaluate")
    weights = load_file(point / "model" / "weights.safetensors")
    right = "accuracy" if "accuracy" in metrics else "exact_match"
    curve = next(curve for name, curve in history.items() if name.endswith(f"/{right}"))
    return Measured(
        parameters=sum(weight.numel() for weight in weights.values()),
        cpu_seconds=done[f"training_{CPU_SECONDS.name}"],
        validation=dict(curve)[done["step"]],
        step=done["step"],
        test=metrics[right],
        aer=metrics.get("aer"),
    )


def row(model: str, seeds: Sequence[Measured]) -> str:
    """A line of the table: means over the seeds, and behind a mean each seed's value."""
    cells = [
        f"`{model}`",
        f"{seeds[0].parameters:,}",
        f"{mean(seed.cpu_seconds for seed in seeds):.0f}",
        _percent([seed.validation for seed in seeds]),
        ", ".join(str(seed.step) for seed in seeds),
        _percent([seed.test for seed in seeds]),
        _percent([seed.aer for seed in seeds if seed.aer is not None]),
    ]
    return f"| {' | '.join(cells)} |"


def _percent(shares: Sequence[float]) -> str:
    if not shares:
        return "–"
    each = ", ".join(f"{100 * share:.1f}" for share in shares)
    return f"**{100 * mean(shares):.1f}** ({each})"


def machine() -> str:
    """The processor and the versions that a time depends on."""
    found = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    facts = dict(line.split(":", 1) for line in found.splitlines() if ":" in line)
    processor, threads = facts["Model name"].strip(), facts["CPU(s)"].strip()
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{processor}, {threads} threads, {versions}"


def main(names: Sequence[str]) -> None:
    rows = []
    for model in known(names):
        rows.append(row(model, measure(model)))
        print(rows[-1], flush=True)
    if names:
        return

    seeds = ", ".join(map(str, SEEDS))
    facts = f"Seeds {seeds}; revision {revision()}; {machine()}."
    write_measured(PAGE, "lesson-models", [facts, "", *HEAD, *rows])


if __name__ == "__main__":
    main(sys.argv[1:])
