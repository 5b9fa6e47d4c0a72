"""What the rows of a study mean: its table, what became of its expectations, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.evaluation.shares import Share
from attnlab.studies.expectations import CONFIDENCE, Finding, Outcome, Published, values_text
from attnlab.studies.few_seeds_tables import few_seeds_table, scatter_table
from attnlab.studies.look import Look, look_at
from attnlab.studies.measured_rows import MeasuredRows, Rows, SentenceCovariances
from attnlab.studies.measurements import AXES
from attnlab.studies.study import Study
from attnlab.studies.verdicts import (
    LEAST_SEEDS,
    outcomes_of_family,
    verdict_on_claim,
    verdict_on_replication,
)
from attnlab.tasks.saved import measure_named


def look_of(study: Study, rows: Rows, sentences: SentenceCovariances) -> Look:
    """What the seeds so far mean for the study, which has looks."""
    measured = study.measured(rows, sentences)
    (expected,) = study.primary
    return look_at(expected.finding(measured), measured.seeds, study.looks)


def result_of(
    study: Study, rows: Rows, sentences: SentenceCovariances | None = None
) -> dict[str, Any]:
    """The table, what became of each expectation and published figure, and the verdict."""
    measured = study.measured(rows, sentences)
    findings = [expected.finding(measured) for expected in study.expect]
    primary = [
        finding
        for expected, finding in zip(study.expect, findings, strict=True)
        if expected in study.primary
    ]
    result: dict[str, Any] = {
        "seeds": measured.seeds,
        "headings": _headings(study),
        "table": _table(study, measured),
        "expectations": [
            [expected.says, *expected.row(finding)]
            for expected, finding in zip(study.expect, findings, strict=True)
        ],
        "primary": [[finding.p_holds, finding.p_fails] for finding in primary],
        "published_table": [_published_row(figure, measured) for figure in study.published],
        "foretold_table": _foretold_table(study, measured),
    }
    if study.comparisons is not None:
        result["scatter_table"] = scatter_table(study.comparisons, measured)
        result["few_seeds_table"] = few_seeds_table(study.comparisons, measured)
    if study.looks:
        look = look_at(primary[0], measured.seeds, study.looks)
        result["look"] = {"level": look.level, "why": look.why}
    # Its family is corrected on the page of all studies.
    alone = verdict_of(study, result, outcomes_of(study, result, primary))
    return result | {"verdict_alone": alone}


def outcomes_of(
    study: Study, result: Mapping[str, Any], primary: Sequence[Finding]
) -> list[Outcome]:
    """Those of the primary expectations: at a look, or corrected over all of them."""
    if not study.looks:
        return outcomes_of_family(primary)
    level = result["look"]["level"]
    return [finding.outcome(level=level or 0.0) for finding in primary]


def verdict_of(study: Study, result: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
    """outcomes: of the primary expectations."""
    if result["seeds"] < LEAST_SEEDS:
        return f"fewer than {LEAST_SEEDS} seeds"
    if not study.source:
        return verdict_on_claim(outcomes, study.depends_on)
    reached = [row[-1] for row in result["published_table"]]
    return verdict_on_replication(reached, outcomes, study.comparable)


def _headings(study: Study) -> list[str]:
    headings = [measure_named(measure).heading for measure in study.measures]
    learnt = ["seeds that learnt"] if study.learnt else []
    return ["system", *learnt, *headings]


def _table(study: Study, measured: MeasuredRows) -> list[list[str]]:
    """A row for each system; none where the study measures curves."""
    if study.measurement in AXES:
        return []
    table = []
    for name in measured.systems:
        learnt = [_learnt_text(measured, name)] if study.learnt else []
        table.append([name, *learnt, *_cells(study, measured, name)])
    return table


def _cells(study: Study, measured: MeasuredRows, system: str) -> list[str]:
    """The values of a system, a dash for a measure that it lacks."""
    cells = []
    for name in study.measures:
        lacks = measured.lacks(system, name)
        cells.append("–" if lacks else values_text(measured, system, measure_named(name)))
    return cells


FORETOLD_HEADINGS = (
    "system", "seeds that learnt", "failures that were foretold", "learnt, but foretold to fail",
    "area under the curve",
)  # fmt: skip


def _foretold_table(study: Study, measured: MeasuredRows) -> list[list[str]]:
    """What the rule said of the seeds of each system; none without a rule."""
    if study.foretelling is None:
        return []
    table = []
    for name in measured.systems:
        foretold = measured.foretold(name)
        area = foretold.area_under_curve()
        spared = foretold.spared
        blamed = Share(spared.of - spared.count, spared.of)
        table.append(
            [
                name,
                _share_text(measured.share_that_learnt(name)),
                _share_text(foretold.failures),
                _share_text(blamed),
                "–" if area is None else f"{area[0]:.2f} ({area[1]:.2f} to {area[2]:.2f})",
            ]
        )
    return table


def _learnt_text(measured: MeasuredRows, system: str) -> str:
    return _share_text(measured.share_that_learnt(measured.model_of(system)))


def _share_text(share: Share) -> str:
    """`4 of 5 (0.28 to 0.99)`."""
    if share.of == 0:
        return "–"
    low, high = share.interval(CONFIDENCE)
    return f"{share.count} of {share.of} ({low:.2f} to {high:.2f})"


def _published_row(published: Published, measured: MeasuredRows) -> list[str]:
    """A published figure beside ours, and whether ours is within its tolerance."""
    system, measure = published.system, measure_named(published.measure)
    theirs = measure.shown(published.value)
    ours = values_text(measured, system, measure)
    tolerance = measure.shown(published.tolerance)
    return [system, measure.heading, theirs, ours, tolerance, published.reached(measured)]
