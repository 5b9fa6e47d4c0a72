"""Verdicts on a study, by fixed rules: what its primary expectations and published figures say.

Only primary expectations decide; the rest have intervals. Primary expectations of one family are
corrected together for their number, by Holm's method; those that were not run yet count, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.evaluation.significance import holm
from attnlab.studies.expectations import Finding, Outcome, Reached

LEAST_SEEDS = 3


def corrected_p_values(findings: Sequence[Finding], not_run: int = 0) -> list[float | None]:
    """Holm's p of each finding among all that were tested; None of one that was not.

    not_run: how many expectations of the family were not measured yet. Each counts as a p of 1, so
        that no verdict is taken back once they are.
    """
    tested = [finding.p for finding in findings if finding.p is not None]
    corrected = iter(holm([*tested, *[1.0] * not_run]))
    return [None if finding.p is None else next(corrected) for finding in findings]


def outcomes_of_family(findings: Sequence[Finding], not_run: int = 0) -> list[Outcome]:
    """The outcome of each finding after Holm's correction; arguments as above."""
    corrected = corrected_p_values(findings, not_run)
    return [finding.outcome(p) for finding, p in zip(findings, corrected, strict=True)]


def verdict_on_claim(outcomes: Sequence[Outcome], depends_on: str = "") -> str:
    """The verdict of the primary expectations of a claim.

    `holds` where all of them do, `does not hold` where some do not and none does, `depends on ...`
    where some do and some do not, else `undecided`.

    depends_on: what the primary expectations differ in, where there are several.
    """
    found = set(outcomes)
    if found == {"holds"}:
        return "holds"
    if {"holds", "does not hold"} <= found:
        return f"depends on {depends_on}"
    if "does not hold" in found:
        return "does not hold"
    return "undecided"


def verdict_on_replication(
    reached: Sequence[Reached], outcomes: Sequence[Outcome], is_comparable: bool
) -> str:
    """The verdict on a replication.

    In the published setup: `contradicted` where a published effect does not hold, `reproduced`
    where every published figure is reached, `direction reproduced` where all effects hold,
    `contradicted` where there are none and a figure is missed by the whole interval, and else
    `undecided`. In another setup: `direction reproduced` where all effects hold, `not comparable`
    where one does not or there are none, and else `undecided`.

    is_comparable: whether the published setup was run.
    """
    effects = set(outcomes)
    if not is_comparable:
        return _verdict_on_another_setup(effects)
    if "does not hold" in effects:
        return "contradicted"
    if reached and set(reached) == {"yes"}:
        return "reproduced"
    if effects == {"holds"}:
        return "direction reproduced"
    return "contradicted" if "no" in reached and not effects else "undecided"


def _verdict_on_another_setup(effects: set[Outcome]) -> str:
    """What fails in another setup does not contradict the published one."""
    if effects == {"holds"}:
        return "direction reproduced"
    if not effects or "does not hold" in effects:
        return "not comparable"
    return "undecided"
