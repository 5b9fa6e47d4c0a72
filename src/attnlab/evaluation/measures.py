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
    def scale(self) -> str:
        """`0–100`, `0–1`, `nats`, or empty for counts and all else."""
        if self.most == 100:
            return "0–100"
        if self.most == 1:
            return "0–1"
        return "nats" if self.meaning.startswith("nats") else ""

    @property
    def heading(self) -> str:
        return f"{self.label} {self.better}".strip()

    def shown(self, value: float | None, signed: bool = False) -> str:
        if value is None:
            return "–"
        return f"{value * self.factor:{'+' if signed else ''},.{self.digits}f}"


CPU_SECONDS = Measure(
    "cpu_seconds",
    label="CPU minutes",
    better="↓",
    digits=2,
    meaning="processor time of the training, validations not counted",
    factor=1 / 60,
)
PEAK_MEGABYTES = Measure(
    "peak_megabytes",
    label="peak MB",
    better="↓",
    digits=0,
    meaning="the most memory that the training's process held",
)
COSTS = (CPU_SECONDS.name, PEAK_MEGABYTES.name)
# Counts in metrics.json that are no measures: facts of the test split.
FACTS = ("sentences", "target_tokens")


def read_measures(path: Path) -> tuple[Measure, ...]:
    """The measures of a YAML file, a list of mappings with the fields of `Measure`."""
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(Measure(**row) for row in rows)


class Measures:
    """The measures that a page knows, in its order.

    known: of a task; the costs follow them.
    ranked_by: names of measures; systems are ranked by the first that they have, if no other is
        wanted.
    """

    def __init__(self, known: Sequence[Measure], ranked_by: Sequence[str] = ()) -> None:
        self.known = (*known, CPU_SECONDS, PEAK_MEGABYTES)
        self.ranked_by = tuple(ranked_by)

    def named(self, name: str) -> Measure:
        """The measure; one without a description for an unknown name."""
        for measure in self.known:
            if measure.name == name:
                return measure
        return Measure(name, name.replace("_", " "), "", 4, "", least=-math.inf)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Known names in the order of the pages, then costs, then unknown names."""
        present = set(names) - set(FACTS)
        known = list(dict.fromkeys(each.name for each in self.known if each.name in present))
        return known + sorted(present - set(known))

    def chosen(self, wanted: str | None, of_runs: Sequence[tuple[str, Iterable[str]]]) -> str:
        """The measure to rank by.

        of_runs: the name of each run and its measures.

        Raises ExperimentError where a run lacks it, or where it has no better direction.
        """
        common = self.in_order(set.intersection(*(set(names) for _, names in of_runs)))
        ranking = [name for name in common if self.named(name).better]
        if wanted is None:
            wanted = next((name for name in (*self.ranked_by, *ranking) if name in ranking), None)
        if wanted not in ranking:
            raise ExperimentError(
                "metric must be one that all runs have and that systems can be ranked by: "
                f"{', '.join(ranking) or 'none'}; got {wanted!r}"
            )
        return wanted
