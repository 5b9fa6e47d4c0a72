"""Factors of a comparison: the mean of each value over the other factors, and interactions.

A factor is a choice in which systems differ, such as the attention. Only combinations count that
were tried with all values of the factor, so that a mean compares like with like.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from attnlab.evaluation.significance import Contrast, SystemSample, contrast, holm
from attnlab.report.findings import Findings, Pair
from attnlab.report.systems import System


@dataclass(frozen=True)
class Level:
    """A value of a factor, and the mean of its systems."""

    value: str
    mean: float


@dataclass(frozen=True, eq=False)
class Factor:
    """A factor of several.

    others: the factors that the means are over.
    systems: how many each mean is over; 0 where no combination of the others was tried with all
        values.
    levels: the best one first; empty without such combinations.
    pairs: all pairs of levels, the better one first; Holm's correction is over these.
    """

    name: str
    others: list[str]
    systems: int
    levels: list[Level]
    pairs: list[Pair]


@dataclass(frozen=True)
class Interaction:
    """How the difference between two values of a factor depends on another factor.

    factor, first, second: whose difference it is, the first less the second.
    other: the factor that it depends on.
    differences: {value of the other: the difference there}, of two values.
    low, high: the interval of the difference between the two.
    p: after Holm's correction over all interactions of the two factors.
    """

    factor: str
    first: str
    second: str
    other: str
    differences: Mapping[str, float]
    low: float
    high: float
    p: float

    @property
    def change(self) -> float:
        """The first of the differences less the second."""
        one, another = self.differences.values()
        return one - another


@dataclass(frozen=True, eq=False)
class Factors:
    """names: of the choices in which systems differ, in their order.
    factors: where there are two of them or more.
    interactions: those that are certain, the largest first.
    tested: how many interactions could be tested.
    """

    names: list[str]
    factors: list[Factor]
    interactions: list[Interaction]
    tested: int


# {name of a factor: value}, hashable.
_Choices = frozenset[tuple[str, str]]


def factors_of(findings: Findings) -> Factors:
    """The factors of the compared systems, by the wanted measure."""
    names = factor_names(findings.systems)
    if len(names) < 2:
        return Factors(names, [], [], 0)

    cells = _Cells(findings.systems, names, findings.samples)
    factors = [_factor(name, cells, findings) for name in names]
    certain: list[Interaction] = []
    tested = 0
    for factor, other in combinations(factors, 2):
        found = _interactions(factor, other, cells, findings)
        tested += len(found)
        certain += [each for each in found if each.p < findings.wanted.threshold]
    certain.sort(key=lambda each: -abs(each.change))
    return Factors(names, factors, certain, tested)


def cell_means(findings: Findings, first: str, second: str) -> dict[tuple[str, str], float]:
    """{(value of the first factor, of the second): mean over the others}.

    Empty where the two were not fully combined.
    """
    by_number = sorted(findings.systems, key=lambda system: system.number)
    cells = _Cells(by_number, factor_names(findings.systems), findings.samples)
    shared = cells.shared_settings([first, second])
    if not shared:
        return {}

    means = {}
    for value in cells.values_of(first):
        for other_value in cells.values_of(second):
            samples = cells.samples({first: value, second: other_value}, shared)
            means[value, other_value] = _mean(samples)
    return means


def factor_names(systems: Sequence[System]) -> list[str]:
    """The choices in which systems differ, in the order in which the runs have them."""
    names: dict[str, None] = {}
    for system in systems:
        names |= dict.fromkeys(system.choices)

    differing = []
    for name in names:
        values = {system.choices.get(name, "") for system in systems}
        if len(values) > 1:
            differing.append(name)
    return differing


class _Cells:
    """The samples of the systems, by the choices in which systems differ.

    names: of the factors.
    samples: {system: its samples}.
    """

    def __init__(
        self,
        systems: Sequence[System],
        names: Sequence[str],
        samples: Mapping[str, SystemSample],
    ) -> None:
        self.names = names
        self._samples: dict[_Choices, SystemSample] = {}
        for system in systems:
            choices = frozenset((name, system.choices.get(name, "")) for name in names)
            self._samples[choices] = samples[system.name]

    def values_of(self, name: str) -> list[str]:
        """The values of a factor, in the order of the systems."""
        values = [dict(choices)[name] for choices in self._samples]
        return list(dict.fromkeys(values))

    def shared_settings(self, crossed: Sequence[str]) -> list[_Choices]:
        """The settings of the other factors that were tried with all values of the crossed ones."""
        times: Counter[_Choices] = Counter()
        for choices in self._samples:
            others = frozenset(choice for choice in choices if choice[0] not in crossed)
            times[others] += 1

        num_combinations = math.prod(len(self.values_of(name)) for name in crossed)
        return [others for others, count in times.items() if count == num_combinations]

    def samples(
        self, values: Mapping[str, str], settings: Sequence[_Choices]
    ) -> list[SystemSample]:
        """The samples with these values of the crossed factors, one for each setting."""
        crossed = frozenset(values.items())
        return [self._samples[setting | crossed] for setting in settings]


def _factor(name: str, cells: _Cells, findings: Findings) -> Factor:
    """A factor with the means of its values, compared in pairs."""
    others = [other for other in cells.names if other != name]
    shared = cells.shared_settings([name])
    if not shared:
        return Factor(name, others, 0, [], [])

    samples = {value: cells.samples({name: value}, shared) for value in cells.values_of(name)}
    levels = [Level(value, _mean(of_value)) for value, of_value in samples.items()]
    sign = findings.measure.sign
    levels.sort(key=lambda level: -sign * level.mean)

    pairs = []
    for better, worse in combinations(levels, 2):
        more, less = samples[better.value], samples[worse.value]
        found = _contrast(more, less, findings)
        pair = Pair.of(
            better.value,
            worse.value,
            difference=better.mean - worse.mean,
            found=found,
            p=None if found is None else found.p,
            seeds=(_fewest_seeds(more), _fewest_seeds(less)),
        )
        pairs.append(pair)
    return Factor(name, others, len(shared), levels, _corrected(pairs))


def _mean(samples: Sequence[SystemSample]) -> float:
    return sum(float(sample.values.mean()) for sample in samples) / len(samples)


def _fewest_seeds(samples: Sequence[SystemSample]) -> int:
    return min(sample.seeds for sample in samples)


def _contrast(
    more: Sequence[SystemSample], less: Sequence[SystemSample], findings: Findings
) -> Contrast | None:
    """The mean of the first systems less the mean of the others, as many."""
    share = 1 / len(more)
    other_share = -1 / len(less)
    weights = [share] * len(more) + [other_share] * len(less)
    return contrast([*more, *less], weights, findings.wanted.confidence)


def _corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with p after Holm's correction over those that can be tested."""
    known = [pair.p for pair in pairs if pair.p is not None]
    if not known:
        return list(pairs)

    p_values = iter(holm(known))
    corrected = []
    for pair in pairs:
        corrected.append(pair if pair.p is None else replace(pair, p=next(p_values)))
    return corrected


def _interactions(
    factor: Factor, other: Factor, cells: _Cells, findings: Findings
) -> list[Interaction]:
    """The interactions of two factors that can be tested."""
    shared = cells.shared_settings([factor.name, other.name])
    if not shared:
        return []

    # Both factors have levels: what was tried with all values of both was with all of each.
    values = [level.value for level in factor.levels]
    other_values = [level.value for level in other.levels]
    found = []
    for ours in combinations(values, 2):
        for theirs in combinations(other_values, 2):
            square = _Square(factor.name, ours, other.name, theirs, cells, shared)
            interaction = square.interaction(findings)
            if interaction is not None:
                found.append(interaction)
    if not found:
        return []

    corrected = holm([each.p for each in found])
    return [replace(each, p=p) for each, p in zip(found, corrected, strict=True)]


@dataclass(frozen=True, eq=False)
class _Square:
    """Two values of a factor, each with two values of another one.

    shared: the settings of all further factors that were tried with all of them.
    """

    factor: str
    values: tuple[str, str]
    other: str
    other_values: tuple[str, str]
    cells: _Cells
    shared: list[_Choices]

    def interaction(self, findings: Findings) -> Interaction | None:
        """How the difference changes with the other factor; None where that cannot be tested."""
        first, second = self.values
        one, another = self.other_values
        more = [*self._samples(first, one), *self._samples(second, another)]
        less = [*self._samples(second, one), *self._samples(first, another)]
        # A mean over the two halves of the change is half of it.
        half = _contrast(more, less, findings)
        if half is None:
            return None
        return Interaction(
            self.factor,
            first,
            second,
            self.other,
            differences={one: self._difference(one), another: self._difference(another)},
            low=2 * half.low,
            high=2 * half.high,
            p=half.p,
        )

    def _difference(self, other_value: str) -> float:
        first, second = self.values
        return _mean(self._samples(first, other_value)) - _mean(self._samples(second, other_value))

    def _samples(self, value: str, other_value: str) -> list[SystemSample]:
        crossed = {self.factor: value, self.other: other_value}
        return self.cells.samples(crossed, self.shared)
