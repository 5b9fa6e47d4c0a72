"""Verdicts on a study, by fixed rules: what its primary expectations and published figures say.

Only primary expectations decide; the rest have intervals. The expectations that one registration
names together are a family: their p values are corrected by Holm's method once, when all of them
are on a page.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.evaluation.significance import holm
from attnlab.studies.expectations import Finding, Outcome, Reached

LEAST_SEEDS = 3


def outcomes_of_family(findings: Sequence[Finding]) -> list[Outcome]:
    """The outcome of each finding after Holm's correction over those that were tested."""
    tested = [finding for finding in findings if finding.p is not None]
    corrected = iter(holm([finding.p for finding in tested if finding.p is not None]))
    return [
        finding.outcome() if finding.p is None else finding.outcome(next(corrected))
        for finding in findings
    ]


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

    `reproduced` where every published figure is reached in the published setup. Else by the
    published effects: `direction reproduced` where all of them hold, `contradicted` where one does
    not. Else `not comparable` where another setup was run, `contradicted` where a figure is missed
    by the whole interval, and `undecided`.

    is_comparable: whether the published setup was run.
    """
    effects = set(outcomes)
    if "does not hold" in effects:
        return "contradicted"
    if is_comparable and reached and set(reached) == {"yes"}:
        return "reproduced"
    if effects == {"holds"}:
        return "direction reproduced"
    if not is_comparable:
        return "not comparable" if not effects else "undecided"
    return "contradicted" if "no" in reached and not effects else "undecided"
