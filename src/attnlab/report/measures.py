"""Measures of a comparison: names, formats, and the better direction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attnlab.errors import ExperimentError
from attnlab.report import classification, translation
from attnlab.report.page import Metric

# Counts in metrics.json that are no measures: facts of the test split.
FACTS = ("sentences", "target_tokens")
_COSTS: dict[str, Metric] = {
    "cpu_seconds": ("CPU minutes", "↓", 2, "processor time of the training, validations not counted"),
    "peak_megabytes": ("peak MB", "↓", 0, "the most memory that the training's process held"),
}
_KNOWN: dict[str, Metric] = {**translation.METRICS, **classification.METRICS, **_COSTS}
_FACTORS = {"cpu_seconds": 1 / 60}
_MOST = {
    **dict.fromkeys(("bleu", "chrf"), 100.0),
    **dict.fromkeys(("exact_match", "accuracy", "f1", "aer"), 1.0),
    **dict.fromkeys(("attention_coverage", "attention_diagonality", "attention_pad_mass"), 1.0),
}
# Default measures for ranking, the first that exists.
_FIRST = ("bleu", "exact_match", "accuracy")


@dataclass(frozen=True)
class Measure:
    """A metric or a cost.

    better: ↑, ↓, or empty for neither.
    digits: after the decimal point.
    meaning: definition, and what it averages over.
    least, most: its range.
    factor: converts from the unit in files to the unit shown.
    """

    name: str
    label: str
    better: str
    digits: int
    meaning: str
    least: float
    most: float
    factor: float

    @property
    def sign(self) -> int:
        """-1 where less is better, else 1."""
        return -1 if self.better == "↓" else 1

    def shown(self, value: float | None, signed: bool = False) -> str:
        if value is None:
            return "–"
        return f"{value * self.factor:{'+' if signed else ''},.{self.digits}f}"


def measure_named(name: str) -> Measure:
    label, better, digits, meaning = _KNOWN.get(name, (name.replace("_", " "), "", 4, ""))
    least = 0.0 if name in _KNOWN else -math.inf
    return Measure(name, label, better, digits, meaning, least, _MOST.get(name, math.inf), _FACTORS.get(name, 1.0))


def in_order(names: Iterable[str]) -> list[str]:
    """Known names in the order of the pages, then costs, then unknown names."""
    there = set(names) - set(FACTS)
    known = [name for name in _KNOWN if name in there]
    return known + sorted(there - set(known))


def chosen_measure(wanted: str | None, of_runs: Sequence[tuple[str, Iterable[str]]]) -> str:
    """The measure to rank by; raises ExperimentError where a run lacks it.

    of_runs: the name of each run and its measures.
    """
    measured = [(name, set(in_order(names))) for name, names in of_runs]
    everywhere = in_order(set.intersection(*(names for _, names in measured)))
    if wanted is None:
        if not everywhere:
            raise ExperimentError("metric: the runs have no metric in common")
        return next((name for name in _FIRST if name in everywhere), everywhere[0])
    lacking = [name for name, names in measured if wanted not in names]
    if lacking and any(wanted in names for _, names in measured):
        raise ExperimentError(
            f"metric: {wanted} is missing in {', '.join(lacking)}; all runs have {', '.join(everywhere)}"
        )
    if lacking:
        raise ExperimentError(f"metric must be null or one of {', '.join(everywhere)}; got {wanted!r}")
    return wanted
