"""What a study measured: rows of its models, which of these learnt, and how sentences scatter.

Rows are measurements, {"system", "seed", "at", measure: value, ...}: `system` is a model of the
study, or a part of what was measured of it (`dot: uniform`); `at` is a place on the study's axis (a
source length, a distance, a training step), and None where there is no axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from attnlab.errors import ExperimentError
from attnlab.evaluation.differences import (
    Difference,
    SentenceScatter,
    difference_from,
    independent_difference,
    paired_difference,
    scatter,
)
from attnlab.evaluation.shares import Share
from attnlab.studies.foretelling import Foretelling, Foretold
from attnlab.tasks.saved import measure_named

Rows = Sequence[Mapping[str, Any]]
PLACE = " @ "  # `dot @ 20` is dot at the place 20 of the axis


def at_place(system: str, place: float) -> str:
    """`dot @ 20`."""
    return f"{system}{PLACE}{place:.15g}"


def _usual_name(system: str) -> str:
    """`dot @ 20` for `dot @ 20.0`; others as they are."""
    name, _, place = system.partition(PLACE)
    return at_place(name, float(place)) if place else system


@dataclass(frozen=True)
class Learnt:
    """When a seed counts as learnt: its best row reaches a threshold, written before the run.

    measure: of the rows. Least or most is best as for the measure, most where neither is.
    reaches: the threshold.
    """

    measure: str
    reaches: float

    def is_reached(self, values: Sequence[float]) -> bool:
        sign = measure_named(self.measure).sign
        return max(sign * value for value in values) >= sign * self.reaches

    @property
    def shown(self) -> str:
        """`exact match of at least 0.5000`."""
        measure = measure_named(self.measure)
        limit = "at most" if measure.sign < 0 else "at least"
        return f"{measure.label} of {limit} {measure.shown(self.reaches)}"


@dataclass(frozen=True)
class SentenceCovariances:
    """How the means of systems vary together over samples of the test sentences.

    by_measure: {measure: {(system, system): covariance}}, each pair in both orders.
    sentences: of the test split, the smallest one where there are several.
    """

    by_measure: Mapping[str, Mapping[tuple[str, str], float]] = field(default_factory=dict)
    sentences: int = 0

    def of_difference(self, measure: str, ours: str, theirs: str) -> SentenceScatter | None:
        """The scatter of a difference of two systems' means; None where it was not measured."""
        found = self.by_measure.get(measure, {})
        ours, theirs = _usual_name(ours), _usual_name(theirs)
        if (ours, theirs) not in found:
            return None
        variance = found[ours, ours] + found[theirs, theirs] - 2 * found[ours, theirs]
        return SentenceScatter(max(0.0, variance), self.sentences)

    def of_mean(self, measure: str, system: str) -> SentenceScatter | None:
        found = self.by_measure.get(measure, {})
        system = _usual_name(system)
        if (system, system) not in found:
            return None
        return SentenceScatter(found[system, system], self.sentences)


class MeasuredRows:
    """Rows of a study, asked for values, differences and shares.

    Args:
        rows: of all seeds.
        models: the names of the study's systems, each of which is one model a seed.
        learnt: means and differences are over the seeds that learnt; None counts all.
        sentences: how the means scatter by the choice of the test sentences.
        paired: whether the models of a seed have so much in common that their differences are
            paired; those of one model are in any case.
        foretelling: a rule that foretells which seeds fail.
    """

    def __init__(
        self,
        rows: Rows,
        models: Sequence[str],
        learnt: Learnt | None = None,
        sentences: SentenceCovariances | None = None,
        paired: bool = False,
        foretelling: Foretelling | None = None,
    ) -> None:
        self.rows = rows
        self._models = models
        self._learnt = learnt
        self._sentences = sentences or SentenceCovariances()
        self._paired = paired
        self._foretelling = foretelling

    @property
    def systems(self) -> list[str]:
        """The measured systems and parts of them, in the order of the study."""
        return list(dict.fromkeys(row["system"] for row in self.rows))

    @property
    def seeds(self) -> int:
        return len({row["seed"] for row in self.rows})

    def model_of(self, system: str) -> str:
        """The model that `dot: uniform` or `dot @ 20` was measured of."""
        name = system.partition(PLACE)[0]
        known = [model for model in self._models if f"{name}: ".startswith(f"{model}: ")]
        return max(known, key=len, default=name)

    def by_seed(self, system: str, measure: str) -> dict[int, float]:
        """{seed: value} of the seeds that learnt.

        Raises ExperimentError where the study did not measure any.
        """
        learnt = self.learnt_by_seed(self.model_of(system))
        values = self.by_every_seed(system, measure)
        return {seed: value for seed, value in values.items() if learnt[seed]}

    def lacks(self, system: str, measure: str) -> bool:
        """Whether others have the measure, and this system cannot: it attends to nothing, say."""
        with_it = {row["system"] for row in self.rows if is_value(row.get(measure))}
        return bool(with_it) and system not in with_it

    def by_every_seed(self, system: str, measure: str) -> dict[int, float]:
        """{seed: value}, whether it learnt or not; errors as for `by_seed`."""
        name, _, place = system.partition(PLACE)
        of_system = [row for row in self.rows if row["system"] == name]
        if place:
            of_system = [row for row in of_system if row["at"] == float(place)]
        values = {row["seed"]: row[measure] for row in of_system if is_value(row.get(measure))}
        if not values:
            raise ExperimentError(
                f"the study measured no {measure} of {system!r}; {self._what_was_measured(name)}"
            )
        return values

    def _what_was_measured(self, system: str) -> str:
        """The measures and places of a system, or the systems that there are."""
        of_system = [row for row in self.rows if row["system"] == system]
        if not of_system:
            return f"it has {', '.join(self.systems)}"
        named = [name for row in of_system for name, value in row.items() if is_value(value)]
        measures = [name for name in dict.fromkeys(named) if name not in ("seed", "at")]
        places = dict.fromkeys(row["at"] for row in of_system if is_value(row["at"]))
        where = f" @ {', '.join(f'{place:.15g}' for place in places)}" if places else ""
        return f"of {system!r}{where} it has {', '.join(measures)}"

    def learnt_by_seed(self, model: str) -> dict[int, bool]:
        """{seed: whether the model learnt}, by its best row.

        Raises ExperimentError where no row of a seed has the measure of the threshold.
        """
        values: dict[int, list[float]] = {}
        for row in self.rows:
            if self.model_of(row["system"]) != model:
                continue
            of_seed = values.setdefault(row["seed"], [])
            if self._learnt is not None and is_value(row.get(self._learnt.measure)):
                of_seed.append(row[self._learnt.measure])
        if self._learnt is None:
            return dict.fromkeys(values, True)
        if not all(values.values()):
            raise ExperimentError(
                f"learnt names {self._learnt.measure!r}, which the study did not measure of "
                f"{model!r}"
            )
        return {seed: self._learnt.is_reached(found) for seed, found in values.items()}

    def share_that_learnt(self, model: str) -> Share:
        learnt = self.learnt_by_seed(model)
        return Share(sum(learnt.values()), len(learnt))

    def share_rescued(self, model: str, failing: str) -> Share:
        """How many of the seeds that another model fails on learn with this one."""
        learnt = self.learnt_by_seed(model)
        failed = [seed for seed, has in self.learnt_by_seed(failing).items() if not has]
        return Share(sum(learnt.get(seed, False) for seed in failed), len(failed))

    def foretold(self, model: str) -> Foretold:
        """What the rule said of the seeds of a model, beside what became of them.

        Raises ExperimentError where there is no rule, or its early value was not measured.
        """
        rule = self._foretelling
        if rule is None:
            raise ExperimentError("the study has no rule, foretell, that foretells failures")
        early = self.by_every_seed(at_place(model, rule.at), rule.measure)
        learnt = self.learnt_by_seed(model)
        return Foretold(
            rule,
            failed={seed: value for seed, value in early.items() if not learnt[seed]},
            learnt={seed: value for seed, value in early.items() if learnt[seed]},
        )

    def difference(self, more: str, less: str | float, measure: str) -> Difference | None:
        """The mean of `more` less that of `less`; None where its certainty cannot be measured.

        Both are paired by seed where they come from one model, or all models are paired.
        """
        ours = self.by_seed(more, measure)
        if not isinstance(less, str):
            of_mean = self._sentences.of_mean(measure, more)
            return difference_from(list(ours.values()), less, of_mean) if ours else None
        theirs = self.by_seed(less, measure)
        if not ours or not theirs:
            return None
        of_sentences = self._sentences.of_difference(measure, more, less)
        if self._are_paired(more, less):
            paired = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
            return paired_difference(paired, of_sentences) if paired else None
        return independent_difference(list(ours.values()), list(theirs.values()), of_sentences)

    def distances_by_seed(self, system: str, measure: str) -> dict[int, float]:
        """{seed: how far its value lies from the median of the system}."""
        values = self.by_seed(system, measure)
        median = float(np.median(list(values.values()))) if values else 0.0
        return {seed: abs(value - median) for seed, value in values.items()}

    def difference_of_scatters(self, more: str, less: str, measure: str) -> Difference | None:
        """How much further the seeds of `more` lie from their median than those of `less`.

        Brown and Forsythe 1974, "Robust tests for the equality of variances", Journal of the
        American Statistical Association 69, compare these distances as other values are compared.
        None as for `difference`.
        """
        ours = list(self.distances_by_seed(more, measure).values())
        theirs = list(self.distances_by_seed(less, measure).values())
        return independent_difference(ours, theirs) if ours and theirs else None

    def scatter_by_sentences(self, system: str, measure: str) -> float | None:
        """The standard deviation of a system's mean by the choice of the test sentences.

        None where it was not measured.
        """
        found = self._sentences.of_mean(measure, system)
        return None if found is None else math.sqrt(found.variance)

    def value_of_difference(self, more: str, less: str | float, measure: str) -> float | None:
        """The difference itself, over the seeds that `difference` takes; None where none learnt."""
        ours = self.by_seed(more, measure)
        if not isinstance(less, str):
            return float(np.mean(list(ours.values()))) - less if ours else None
        theirs = self.by_seed(less, measure)
        if self._are_paired(more, less):
            ours = {seed: value for seed, value in ours.items() if seed in theirs}
            theirs = {seed: theirs[seed] for seed in ours}
        if not ours or not theirs:
            return None
        return float(np.mean(list(ours.values())) - np.mean(list(theirs.values())))

    def _are_paired(self, more: str, less: str) -> bool:
        """Whether differences of two systems are taken seed by seed."""
        return self._paired or self.model_of(more) == self.model_of(less)

    def scatters(self, more: str, less: str | float, measure: str) -> bool:
        """Whether seeds of any of the two differ."""
        compared = [more] if not isinstance(less, str) else [more, less]
        groups = [list(self.by_seed(system, measure).values()) for system in compared]
        return any(scatter(np.array(group)) for group in groups if group)


def is_value(value: Any) -> bool:
    """Whether a cell of a row has a number."""
    return isinstance(value, Real) and not math.isnan(value)


def pairs_of(systems: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs, each system with itself among them."""
    return list(itertools.combinations_with_replacement(systems, 2))
