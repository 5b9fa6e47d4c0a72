"""A covering array of strength 2.

Few experiments that hold every pair of choices that can go together.

Greedy, one row for each pair that is left, filled up so as to hold as many others as it can; the
rules of `legal_choices` prune the filling.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from legal_choices import FACTORS, RULES, Row, refusal

Pair = frozenset[tuple[str, Any]]
Domains = Mapping[str, list[Any]]


def pairs_of(row: Mapping[str, Any]) -> Iterator[Pair]:
    """Every two choices of a row."""
    return map(frozenset, itertools.combinations(row.items(), 2))


def every_pair() -> Iterator[Row]:
    for one, other in itertools.combinations(FACTORS, 2):
        for values in itertools.product(FACTORS[one], FACTORS[other]):
            yield dict(zip((one, other), values, strict=True))


def narrowed(row: Row, possible: Domains, name: str) -> dict[str, list[Any]]:
    """What the other factors can still be after `name` was chosen in the row."""
    ready = [(rule, {*rule.factors} - row.keys()) for rule in RULES if name in rule.factors]
    narrow = dict(possible)
    for rule, missing in ready:
        if len(missing) == 1:
            (other,) = missing
            others = [(value, {**row, other: value}) for value in narrow[other]]
            narrow[other] = [
                value
                for value, whole in others
                if not rule.refuses(*(whole[f] for f in rule.factors))
            ]
    return narrow


def completed(row: Row, possible: Domains, uncovered: set[Pair]) -> Row | None:
    """The row with a value for each factor, so that all go together.

    None where there is no such row.

    Depth first, the factor with the fewest possible values next; of these the one first that makes
    the most uncovered pairs with what is already there.
    """
    if not possible:
        return row
    name = min(possible, key=lambda factor: len(possible[factor]))
    rest = {factor: values for factor, values in possible.items() if factor != name}

    def gain(value: Any) -> int:
        return sum(frozenset({(name, value), choice}) in uncovered for choice in row.items())

    for value in sorted(possible[name], key=gain, reverse=True):
        longer = {**row, name: value}
        found = completed(longer, narrowed(longer, rest, name), uncovered)
        if found is not None:
            return found
    return None


def filled(choices: Row, uncovered: set[Pair]) -> Row | None:
    """A row of these choices and others that go together with them and with each other.

    None where there is none.

    Whether the choices themselves go together is not asked.
    """
    possible: Domains = {
        factor: values for factor, values in FACTORS.items() if factor not in choices
    }
    for name in choices:
        possible = narrowed(choices, possible, name)
    row = completed(choices, possible, uncovered)
    return None if row is None else {name: row[name] for name in FACTORS}


@functools.cache
def covering_array() -> tuple[list[Row], list[Row]]:
    """Rows of choices that go together and hold every pair that can.

    And the pairs that no such row can hold.
    """
    uncovered = {pair for choices in every_pair() for pair in pairs_of(choices)}
    rows, impossible = [], []
    for choices in every_pair():
        (pair,) = pairs_of(choices)
        if pair not in uncovered:
            continue
        row = filled(choices, uncovered) if refusal(choices) is None else None
        if row is None:
            impossible.append(choices)
        else:
            rows.append(row)
            uncovered.difference_update(pairs_of(row))
    return rows, impossible
