"""Measure several systems in turn, so that other load on the machine affects all of them equally."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Measured = dict[str, float]


@dataclass
class Rounds:
    """What each contestant measured in each round."""

    of: dict[str, list[Measured]] = field(default_factory=dict)

    def median(self, name: str, value: str) -> float:
        """The median over the rounds of one contestant's value."""
        return statistics.median(measured[value] for measured in self.of[name])

    def ratio(self, name: str, rival: str, value: str) -> float:
        """The median over the rounds of how many times the rival's value a contestant's is, in the same round."""
        pairs = zip(self.of[name], self.of[rival], strict=True)
        return statistics.median(ours[value] / theirs[value] for ours, theirs in pairs)

    def spread(self, name: str, value: str) -> float:
        """How far apart the least and the greatest round lie, in percent of the median."""
        values = [measured[value] for measured in self.of[name]]
        return 100 * (max(values) - min(values)) / statistics.median(values)


def measure(contestants: Mapping[str, Callable[[], Measured]], rounds: int) -> Rounds:
    """Each contestant once a round, every round beginning with another one; progress goes to the error output.

    Raises ValueError where there is nothing to measure.
    """
    if rounds < 1 or not contestants:
        raise ValueError(f"there must be a round and a contestant, got {rounds} and {len(contestants)}")
    names = list(contestants)
    found = Rounds({name: [] for name in names})
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            measured = contestants[name]()
            found.of[name].append(measured)
            values = ", ".join(f"{key} {value:,.4g}" for key, value in measured.items())
            print(f"round {number + 1} of {rounds}  {name}: {values}", file=sys.stderr, flush=True)
    return found
