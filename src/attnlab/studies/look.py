"""A look at the seeds of a study that may stop before its last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.evaluation.looks import FUTILE, chance_of_the_end, levels_of_looks
from attnlab.studies.expectations import THRESHOLD, Finding


@dataclass(frozen=True)
class Look:
    """seeds: so far. level: that p is compared with; None for a number of seeds without a look.
    ends: whether no further seeds are needed. why: in words.
    """

    seeds: int
    level: float | None
    ends: bool
    why: str


def look_at(finding: Finding, seeds: int, looks: Sequence[int]) -> Look:
    """What a finding after so many seeds means for a study.

    looks: the numbers of seeds that were fixed beforehand.
    """
    if seeds not in looks:
        return Look(seeds, None, ends=False, why="no look was planned here, so nothing is decided")
    level = levels_of_looks(tuple(looks), THRESHOLD)[list(looks).index(seeds)]
    of_last = f"look {list(looks).index(seeds) + 1} of {len(looks)}, at a level of {level:.4f}"
    if finding.p is not None and finding.p < level:
        return Look(seeds, level, ends=True, why=f"decided at {of_last}")
    if seeds == looks[-1]:
        return Look(seeds, level, ends=True, why=f"not decided at {of_last}")
    if finding.p is not None:
        chance = chance_of_the_end(finding.p, seeds, looks, THRESHOLD)
        if chance < FUTILE:
            why = f"given up at {of_last}: the chance to decide it is {chance:.2f}"
            return Look(seeds, level, ends=True, why=why)
    return Look(seeds, level, ends=False, why=f"not decided at {of_last}; more seeds follow")
