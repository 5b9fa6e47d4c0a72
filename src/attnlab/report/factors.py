"""Factors of a comparison: the mean of each value over the other factors, and interactions.

A factor is a choice in which systems differ, such as the attention. Only combinations count that
were tried with all values of the factor, so that a mean compares like with like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from attnlab.evaluation.significance import Contrast, SystemSample, contrast, holm
from attnlab.report.compared_runs import System
from attnlab.report.findings import Findings, Pair


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

    cells: dict[_Choices, SystemSample] = {}
    for system in findings.systems:
        cells[_choices_of(system, names)] = findings.samples[system.name]
    factors = [_factor(name, names, cells, findings) for name in names]

    certain: list[Interaction] = []
    tested = 0
    for factor, other in combinations(factors, 2):
        found = _interactions(factor, other, names, cells, findings)
        tested += len(found)
        certain += [each for each in found if each.p < 1 - findings.wanted.confidence]
    certain.sort(key=lambda each: -abs(each.change))
    return Factors(names, factors, certain, tested)


def cell_means(findings: Findings, first: str, second: str) -> dict[tuple[str, str], float]:
    """{(value of the first factor, of the second): mean over the others}.

    Empty where the two were not fully combined.
    """
    names = factor_names(findings.systems)
    by_number = sorted(findings.systems, key=lambda system: system.number)
    cells = {_choices_of(system, names): findings.samples[system.name] for system in by_number}
    shared = _shared_settings([first, second], names, cells)
    means = {}
    for value in _values_of(first, cells):
        for other_value in _values_of(second, cells):
            cell = {(first, value), (second, other_value)}
            if shared:
                means[value, other_value] = _mean([cells[each | cell] for each in shared])
    return means


def factor_names(systems: Sequence[System]) -> list[str]:
    """The choices in which systems differ, in the order in which the runs have them."""
    values: dict[str, set[str]] = {}
    for system in systems:
        for name in system.choices:
            values.setdefault(name, set())
    for name, found in values.items():
        found |= {system.choices.get(name, "") for system in systems}
    return [name for name, found in values.items() if len(found) > 1]


def _choices_of(system: System, names: Sequence[str]) -> _Choices:
    return frozenset((name, system.choices.get(name, "")) for name in names)


def _values_of(name: str, cells: Mapping[_Choices, SystemSample]) -> list[str]:
    return list(dict.fromkeys(dict(choices)[name] for choices in cells))


def _shared_settings(
    crossed: Sequence[str], names: Sequence[str], cells: Mapping[_Choices, SystemSample]
) -> list[_Choices]:
    """The settings of the other factors that were tried with all values of the crossed ones."""
    combined: dict[_Choices, int] = {}
    for choices in cells:
        others = frozenset(each for each in choices if each[0] not in crossed)
        combined[others] = combined.get(others, 0) + 1
    expected = 1
    for name in crossed:
        expected *= len(_values_of(name, cells))
    return [others for others, count in combined.items() if count == expected]


def _factor(
    name: str,
    names: Sequence[str],
    cells: Mapping[_Choices, SystemSample],
    findings: Findings,
) -> Factor:
    others = [other for other in names if other != name]
    shared = _shared_settings([name], names, cells)
    if not shared:
        return Factor(name, others, 0, [], [])

    samples: dict[str, list[SystemSample]] = {}
    for value in _values_of(name, cells):
        samples[value] = [cells[setting | {(name, value)}] for setting in shared]
    levels = [Level(value, _mean(of_value)) for value, of_value in samples.items()]
    sign = findings.measures.named(findings.wanted.measure).sign
    levels.sort(key=lambda level: -sign * level.mean)

    pairs = []
    for better, worse in combinations(levels, 2):
        found = _contrast(samples[better.value], samples[worse.value], findings)
        pair = Pair(
            better.value,
            worse.value,
            difference=better.mean - worse.mean,
            low=None if found is None else found.low,
            high=None if found is None else found.high,
            p=None if found is None else found.p,
            seeds=(_fewest_seeds(samples[better.value]), _fewest_seeds(samples[worse.value])),
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
    weights = [1 / len(more)] * len(more) + [-1 / len(less)] * len(less)
    return contrast([*more, *less], weights, findings.wanted.confidence)


def _corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with p after Holm's correction over those that can be tested."""
    known = [pair.p for pair in pairs if pair.p is not None]
    corrected = iter(holm(known) if known else [])
    return [pair if pair.p is None else replace(pair, p=next(corrected)) for pair in pairs]


def _interactions(
    factor: Factor,
    other: Factor,
    names: Sequence[str],
    cells: Mapping[_Choices, SystemSample],
    findings: Findings,
) -> list[Interaction]:
    """The interactions of two factors that can be tested."""
    shared = _shared_settings([factor.name, other.name], names, cells)
    if not shared:
        return []

    def samples_at(value: str, other_value: str) -> list[SystemSample]:
        cell = {(factor.name, value), (other.name, other_value)}
        return [cells[setting | cell] for setting in shared]

    # Both factors have levels: what was tried with all values of both was with all of each.
    values = [level.value for level in factor.levels]
    other_values = [level.value for level in other.levels]
    found = []
    for first, second in combinations(values, 2):
        for one, another in combinations(other_values, 2):
            more = [*samples_at(first, one), *samples_at(second, another)]
            less = [*samples_at(second, one), *samples_at(first, another)]
            change = _contrast(more, less, findings)
            if change is None:
                continue
            differences = {}
            for value in (one, another):
                at_first = _mean(samples_at(first, value))
                differences[value] = at_first - _mean(samples_at(second, value))
            # A mean over the two halves of a change is half of it.
            interaction = Interaction(
                factor.name,
                first,
                second,
                other.name,
                differences,
                low=2 * change.low,
                high=2 * change.high,
                p=change.p,
            )
            found.append(interaction)
    if not found:
        return []
    corrected = holm([each.p for each in found])
    return [replace(each, p=p) for each, p in zip(found, corrected, strict=True)]
