"""The tables of a study that asks what few seeds would have claimed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from attnlab.studies.few_seeds import (
    LEVEL,
    Claims,
    FewSeeds,
    claims_of_itself,
    claims_of_two,
    scatter_of,
)
from attnlab.studies.measured_rows import MeasuredRows
from attnlab.tasks.saved import measure_named

RULE = (
    "Comparisons of few seeds are drawn from all of them, twenty thousand of each kind. Of a "
    "system and itself every claim of a difference is false; of two systems the one that is worse "
    "over all seeds should not be ahead. p is that of Welch's test. Intervals of standard "
    "deviations take the seeds for normal."
)


def scatter_headings(few: FewSeeds) -> list[str]:
    label = measure_named(few.measure).label
    return ["system", "seeds", f"standard deviation of {label}", "of the mean, by the sentences"]


def scatter_table(few: FewSeeds, measured: MeasuredRows) -> list[list[str]]:
    """How much one model scatters by its seed, and the mean of all by the test sentences."""
    measure = measure_named(few.measure)
    table = []
    for name in measured.systems:
        values = _values(measured, name, few.measure)
        found = scatter_of(values)
        text = "–"
        if found is not None:
            shown = [measure.shown(end) for end in (found.value, found.low, found.high)]
            text = f"{shown[0]} ({shown[1]} to {shown[2]})"
        of_sentences = measured.scatter_by_sentences(name, few.measure)
        by_sentences = "–" if of_sentences is None else measure.shown(of_sentences)
        table.append([name, str(len(values)), text, by_sentences])
    return table


def few_seeds_headings(few: FewSeeds) -> list[str]:
    measure = measure_named(few.measure)
    apart = [f"{measure.shown(difference)} apart or more" for difference in few.differences]
    return ["compared", "seeds each", *apart, "the worse one ahead", f"p < {LEVEL}"]


def few_seeds_table(few: FewSeeds, measured: MeasuredRows) -> list[list[str]]:
    """What comparisons of few seeds claim: of each system with itself, and of each two systems."""
    sign = measure_named(few.measure).sign
    values = {name: sign * _values(measured, name, few.measure) for name in measured.systems}
    table = []
    for name, of_system in values.items():
        for seeds in few.seeds:
            if 2 * seeds <= len(of_system):
                claims = claims_of_itself(of_system, seeds, few)
                table.append([f"{name}, and itself", *_claims_row(seeds, claims)])

    for pair in combinations(values, 2):
        worse, better = sorted(pair, key=lambda name: float(values[name].mean()))
        for seeds in few.seeds:
            if seeds <= min(len(values[better]), len(values[worse])):
                claims = claims_of_two(values[better], values[worse], seeds, few)
                table.append([f"{better}, and {worse}", *_claims_row(seeds, claims)])
    return table


def _claims_row(seeds: int, claims: Claims) -> list[str]:
    shares = [*claims.apart, claims.reversed, claims.significant]
    return [str(seeds), *("–" if share is None else f"{share:.1%}" for share in shares)]


def _values(measured: MeasuredRows, system: str, measure: str) -> NDArray[np.float64]:
    return np.array(list(measured.by_seed(system, measure).values()))
