"""Measures of the reports: names, formats, and the better direction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from attnlab.errors import ExperimentError


@dataclass(frozen=True)
class Measure:
    """A metric of the test split, or a cost.

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
    least: float = 0.0
    most: float = math.inf
    factor: float = 1.0

    @property
    def sign(self) -> int:
        """-1 where less is better, else 1."""
        return -1 if self.better == "↓" else 1

    @property
    def heading(self) -> str:
        return f"{self.label} {self.better}".strip()

    def shown(self, value: float | None, signed: bool = False) -> str:
        if value is None:
            return "–"
        return f"{value * self.factor:{'+' if signed else ''},.{self.digits}f}"


_FILE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TRANSLATION, CLASSIFICATION, (CPU_SECONDS, PEAK_MEGABYTES) = (
    tuple(Measure(**each) for each in _FILE[name])
    for name in ("translation", "classification", "costs")
)
COSTS = (CPU_SECONDS.name, PEAK_MEGABYTES.name)
# Counts in metrics.json that are no measures: facts of the test split.
_FACTS = ("sentences", "target_tokens")
# Default measures for ranking, the first that exists.
_FIRST = ("bleu", "exact_match", "accuracy")
_ALL = (*TRANSLATION, *CLASSIFICATION, CPU_SECONDS, PEAK_MEGABYTES)


def measure_named(name: str, known: Sequence[Measure] = _ALL) -> Measure:
    """The measure; one without a description for an unknown name."""
    unknown = Measure(name, name.replace("_", " "), "", 4, "", least=-math.inf)
    return next((each for each in known if each.name == name), unknown)


def in_order(names: Iterable[str]) -> list[str]:
    """Known names in the order of the pages, then costs, then unknown names."""
    there = set(names) - set(_FACTS)
    known = list(dict.fromkeys(each.name for each in _ALL if each.name in there))
    return known + sorted(there - set(known))


def chosen_measure(wanted: str | None, of_runs: Sequence[tuple[str, Iterable[str]]]) -> str:
    """The measure to rank by.

    of_runs: the name of each run and its measures.

    Raises ExperimentError where a run lacks it, or where it has no better direction.
    """
    common = in_order(set.intersection(*(set(names) for _, names in of_runs)))
    ranking = [name for name in common if measure_named(name).better]
    if wanted is None:
        wanted = next((name for name in (*_FIRST, *ranking) if name in ranking), None)
    if wanted not in ranking:
        raise ExperimentError(
            "metric must be one that all runs have and that systems can be ranked by: "
            f"{', '.join(ranking) or 'none'}; got {wanted!r}"
        )
    return wanted
