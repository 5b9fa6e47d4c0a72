"""Runs of a comparison, their evaluations, and the systems that group them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.evaluation.text_metrics import length_buckets
from attnlab.report import stage_files
from attnlab.report.measures import Measure
from attnlab.report.stage_files import read_json, read_lines

# Keys of input and expected output in the files of the two tasks.
_TRANSLATION, _CLASSIFICATION = ("source", "reference"), ("text", "label")


@dataclass(frozen=True, eq=False)
class EvaluationFiles:
    """An evaluation folder.

    metrics: of the test split, without null values.
    sentences: rows of hypotheses.jsonl or of predictions.jsonl.
    by_length: rows {"from", "to", "sentences", ...} with quality by source length.
    maps: attention maps; empty without attention.
    translates: true for a translation, false for a classification.
    """

    metrics: dict[str, float]
    signatures: dict[str, str]
    sentences: list[dict[str, Any]]
    by_length: list[dict[str, Any]]
    maps: list[AttentionMap]
    translates: bool

    @cached_property
    def test_set(self) -> str:
        """A digest of inputs and expected outputs; runs that share it used the same sentences."""
        source, target = _TRANSLATION if self.translates else _CLASSIFICATION
        texts = json.dumps([[row[source], row[target]] for row in self.sentences])
        return hashlib.sha256(texts.encode()).hexdigest()


def has_evaluation(folder: Path) -> bool:
    """Whether the folder holds an evaluation."""
    return (folder / "metrics.json").is_file()


def read_evaluation(folder: Path) -> EvaluationFiles:
    """Read an evaluation folder; raises ExperimentError where a file is missing or invalid."""
    metrics = read_json(folder / "metrics.json", "evaluate", stage_files.Metrics)
    translates = (folder / "hypotheses.jsonl").is_file()
    name, kind = ("hypotheses", stage_files.Translated) if translates else ("predictions", stage_files.Predicted)
    sentences = read_lines(folder / f"{name}.jsonl", kind)
    maps = folder / "attention.npz"
    return EvaluationFiles(
        metrics={name: float(value) for name, value in metrics.items() if value is not None},
        signatures=read_json(folder / "signatures.json", "evaluate", stage_files.Signatures),
        sentences=sentences,
        by_length=(
            read_json(folder / "by_length.json", "evaluate", list[stage_files.OfLength])
            if translates
            else accuracy_by_length(sentences)
        ),
        maps=load_maps(maps) if maps.is_file() else [],
        translates=translates,
    )


def accuracy_by_length(sentences: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows {"from", "to", "sentences", "accuracy"} of predictions; lengths in tokens, both ends included."""
    lengths = np.array([row["length"] for row in sentences], dtype=np.int64)
    correct = np.array([row["correct"] for row in sentences], dtype=np.float64)
    table = []
    for low, high in length_buckets(lengths):
        inside = (lengths >= low) & (lengths <= high)
        accuracy = float(correct[inside].mean())
        table.append({"from": low, "to": high, "sentences": int(inside.sum()), "accuracy": accuracy})
    return table


COSTS = ("cpu_seconds", "peak_megabytes")


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A trained model and its evaluation.

    system: the name of its system.
    choices: {short name: text} of what varies between systems, without the seed.
    seed: as text; empty where unknown.
    history: {name: [(step, value), ...]} of training and validation.
    cpu_seconds, peak_megabytes: of the training; None where not measured.
    """

    name: str
    system: str
    choices: Mapping[str, str]
    seed: str
    evaluation: EvaluationFiles = field(repr=False)
    history: Mapping[str, Sequence[tuple[int, float]]] = field(repr=False)
    cpu_seconds: float | None
    peak_megabytes: float | None
    run_id: str | None

    @property
    def measured(self) -> dict[str, float]:
        """Test metrics and costs, by name."""
        costs = {name: getattr(self, name) for name in COSTS}
        return {**self.evaluation.metrics, **{name: value for name, value in costs.items() if value is not None}}


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


def each_once(runs: Sequence[ComparedRun]) -> tuple[list[ComparedRun], list[LeftOut]]:
    """The runs without repetitions of an experiment, which are no second seed; and the repetitions."""
    first: dict[tuple[str, str], ComparedRun] = {}
    repeated = []
    for run in runs:
        same = first.setdefault((run.system, run.seed), run)
        if same is not run:
            repeated.append(LeftOut(run.name, f"the same choices and seed as {same.name}"))
    return list(first.values()), repeated


def title_of(varied: str, runs: Sequence[ComparedRun]) -> str:
    """`attention × seed: 6 runs of 3 systems`."""
    systems = len({run.system for run in runs})
    return f"{varied}: {len(runs)} run{'s' * (len(runs) != 1)} of {systems} system{'s' * (systems != 1)}"


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
    """Systems by their mean over the seeds, the best first; those without the measure are left out."""
    means = {each.name: sum(values) / len(values) for each in systems if (values := each.measured(measure.name))}
    return sorted((each for each in systems if each.name in means), key=lambda each: -measure.sign * means[each.name])
