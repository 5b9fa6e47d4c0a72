"""Runs of a comparison, their evaluations, and the systems that group them."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.files import read_own_record
from attnlab.report.measures import Measure


@dataclass(frozen=True, eq=False)
class EvaluationFiles:
    """An evaluation folder.

    metrics: of the test split, without null values.
    sentences: rows of hypotheses.jsonl or of predictions.jsonl.
    by_length: rows {"from", "to", "sentences", ...} with quality by source length; empty for a
        classifier.
    maps: attention maps; empty without attention.
    translates: true for a translation, false for a classification.
    """

    metrics: dict[str, float]
    signatures: dict[str, str]
    sentences: list[dict[str, Any]]
    by_length: list[dict[str, Any]]
    maps: list[AttentionMap]
    translates: bool

    @property
    def source_key(self) -> str:
        """The key of the input in `sentences`."""
        return "source" if self.translates else "text"

    @cached_property
    def test_set(self) -> str:
        """A digest of inputs and expected outputs; runs that share it used the same sentences."""
        target = "reference" if self.translates else "label"
        texts = json.dumps([[row[self.source_key], row[target]] for row in self.sentences])
        return hashlib.sha256(texts.encode()).hexdigest()


def has_evaluation(folder: Path) -> bool:
    return (folder / "metrics.json").is_file()


def read_evaluation(folder: Path) -> EvaluationFiles:
    """Read an evaluation folder; raises ExperimentError where a file is missing or no JSON."""
    metrics = read_json(folder / "metrics.json", "evaluate")
    translates = (folder / "hypotheses.jsonl").is_file()
    sentences = read_lines(folder / ("hypotheses.jsonl" if translates else "predictions.jsonl"))
    return EvaluationFiles(
        metrics={name: float(value) for name, value in metrics.items() if value is not None},
        signatures=read_json(folder / "signatures.json", "evaluate"),
        sentences=sentences,
        by_length=read_json(folder / "by_length.json", "evaluate") if translates else [],
        maps=load_maps(folder / "attention.npz"),
        translates=translates,
    )


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A trained model and its evaluation.

    system: the name of its system.
    choices: {name: text} of what varies between systems, without the seed.
    seed: as text; empty where unknown.
    history: {name: [(step, value), ...]} of training and validation.
    costs: `cpu_seconds` and `peak_megabytes` of the training, where they were measured.
    parameters: {name: text} of all settings that affect the results, the choices left out.
    """

    name: str
    choices: Mapping[str, str]
    seed: str
    evaluation: EvaluationFiles = field(repr=False)
    history: Mapping[str, Sequence[tuple[int, float]]] = field(repr=False)
    costs: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_id: str | None = None
    system: str = ""

    @property
    def measured(self) -> dict[str, float]:
        """Test metrics and costs, by name."""
        return {**self.evaluation.metrics, **self.costs}


@dataclass(frozen=True)
class LeftOut:
    """A run that was left out, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Runs to compare.

    title: of the page.
    facts: about the selection, as (label, value).
    parent: the tracker's run whose children they all are.
    """

    title: str
    facts: list[tuple[str, str]]
    runs: list[ComparedRun]
    left_out: list[LeftOut]
    parent: str | None = None

    @property
    def choices(self) -> list[str]:
        """The names of all choices."""
        return list(dict.fromkeys(name for run in self.runs for name in run.choices))

    @property
    def parameters(self) -> list[str]:
        """The names of all parameters of any run, those with short names first."""
        return sorted(
            {name for run in self.runs for name in run.parameters},
            key=lambda name: ("." in name, name),
        )


@dataclass(frozen=True, eq=False)
class System:
    """The runs that agree in all choices but the seed.

    number: its place in the order of reading; selects its colour."""

    name: str
    number: int
    runs: list[ComparedRun]

    def measured(self, measure: str) -> list[float]:
        """The values of the seeds that have one."""
        return [run.measured[measure] for run in self.runs if measure in run.measured]

    def median_run(self, measure: str) -> ComparedRun:
        """The run of the median seed; of an even number of them the lower of the two."""
        measured = [run for run in self.runs if measure in run.measured]
        in_order = sorted(measured, key=lambda run: run.measured[measure])
        return in_order[(len(in_order) - 1) // 2]


def systems_of(runs: Sequence[ComparedRun]) -> list[System]:
    """Group runs into systems, in the order of their first runs."""
    by_name: dict[str, list[ComparedRun]] = {}
    for run in runs:
        by_name.setdefault(run.system, []).append(run)
    return [System(name, number, members) for number, (name, members) in enumerate(by_name.items())]


def ranked(systems: Sequence[System], measure: Measure) -> list[System]:
    """Systems by their mean over the seeds, the best first.

    Systems without the measure are left out.
    """
    means = {
        each.name: sum(values) / len(values)
        for each in systems
        if (values := each.measured(measure.name))
    }
    return sorted(
        (each for each in systems if each.name in means),
        key=lambda each: -measure.sign * means[each.name],
    )


def read_json(path: Path, stage: str) -> Any:
    """The content of a JSON file that `stage` writes.

    Raises ExperimentError where it is missing or damaged.
    """
    return read_own_record(path, object, f"run the {stage} stage again")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file that the evaluation writes."""
    # Not splitlines(): a sentence may contain U+2028.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def read_history(path: Path) -> dict[str, list[tuple[int, float]]]:
    """{name: [(step, value), ...]} of a history.csv (step, epoch, name, value).

    Only finite values.
    """
    history: dict[str, list[tuple[int, float]]] = {}
    for row in csv.DictReader(path.read_text(encoding="utf-8").split("\n")):
        value = float(row["value"] or "nan")
        if math.isfinite(value):
            history.setdefault(row["name"], []).append((int(row["step"]), value))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in history.items()}
