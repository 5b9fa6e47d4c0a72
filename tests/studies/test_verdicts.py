"""Verdicts of studies: intervals over seeds, expectations, published figures, and their page."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from attnlab.errors import ExperimentError
from attnlab.studies.study import Study
from attnlab.studies.study_page import KINDS, ShownStudy, study_page
from attnlab.studies.verdicts import (
    Expectation,
    Published,
    mean_interval,
    values_of,
    verdict_on_claim,
    verdict_on_replication,
    welch_interval,
)


def rows(**systems: list[float]) -> list[dict[str, Any]]:
    return [
        {"system": name, "seed": seed, "at": None, "bleu": value, "aer": value / 100, "tau": value}
        for name, values in systems.items()
        for seed, value in enumerate(values, start=1)
    ]


FOUND = rows(
    good=[30, 31, 32], near=[30.1, 31.2, 31.9], bad=[20, 22, 21], wild=[10, 50, 30], one=[40]
)


def test_interval_of_a_mean_is_students() -> None:
    found = mean_interval([30, 31, 32])
    assert (found.mean, found.low, found.high) == pytest.approx(
        (31, 31 - 4.3027 / 3**0.5, 31 + 4.3027 / 3**0.5), 1e-4
    )
    assert mean_interval([5.0]).low is None
    assert mean_interval([5.0, 5.0]).low == 5


def test_interval_of_a_difference_is_welchs() -> None:
    ours, theirs = [30, 31, 32, 34], [20, 25, 21]
    found, expected = welch_interval(ours, theirs), stats.ttest_ind(ours, theirs, equal_var=False)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    alike = welch_interval([2, 2], [1, 1])
    assert (alike.low, alike.high) == (1, 1)


@pytest.mark.parametrize(
    ("more", "less", "by", "within", "outcome"),
    [
        ("good", "bad", 0, None, "holds"),
        ("good", "bad", 9.9, None, "undecided"),
        ("bad", "good", 0, None, "does not hold"),
        ("good", "bad", 20, None, "does not hold"),
        ("wild", "good", 0, None, "undecided"),
        ("one", "good", 0, None, "undecided"),
        ("good", "near", 0, 3, "holds"),
        ("good", "bad", 0, 3, "does not hold"),
        ("good", "wild", 0, 3, "undecided"),
        ("good", 25.0, 0, None, "holds"),
        ("good", 35.0, 0, None, "does not hold"),
    ],
)
def test_expectation_holds_where_its_whole_interval_does(
    more: str, less: str | float, by: float, within: float | None, outcome: str
) -> None:
    assert Expectation("", "bleu", more, less, by, within).outcome(FOUND) == outcome


@pytest.mark.parametrize(
    ("measure", "value", "tolerance", "reached"),
    [
        ("bleu", 31.5, 0.5, True),
        ("bleu", 31.6, 0.5, False),
        ("bleu", 10.0, 0.5, True),  # better is reached
        ("aer", 0.30, 0.02, True),
        ("aer", 0.25, 0.02, False),
        ("aer", 0.50, 0.02, True),
        ("tau", 10.0, 0.5, False),  # no direction is better
        ("tau", 30.6, 0.5, True),
    ],
)
def test_published_figure_is_reached_within_its_tolerance_or_better(
    measure: str, value: float, tolerance: float, reached: bool
) -> None:
    assert Published("good", measure, value, tolerance).is_reached(FOUND) is reached


def test_verdicts_follow_from_their_parts() -> None:
    assert verdict_on_claim(["holds", "holds"]) == "holds"
    assert (
        verdict_on_claim(["holds", "does not hold"])
        == verdict_on_claim(["holds", "undecided"])
        == "holds in part"
    )
    assert verdict_on_claim(["undecided", "does not hold"]) == "does not hold"
    assert verdict_on_claim(["undecided"]) == "undecided"
    assert verdict_on_replication([True, True], ["undecided"]) == "reproduced"
    assert (
        verdict_on_replication([True, False], ["holds"])
        == verdict_on_replication([], ["holds"])
        == "direction only"
    )
    assert (
        verdict_on_replication([False], ["undecided"])
        == verdict_on_replication([False], [])
        == "not reproduced"
    )


def test_values_are_those_of_a_system_at_a_place() -> None:
    measured = [
        {"system": "dot", "seed": 1, "at": 5, "bleu": 1.0},
        {"system": "dot", "seed": 1, "at": 10, "bleu": 2.0},
    ]
    assert values_of(measured, "dot @ 10", "bleu") == [2.0]
    with pytest.raises(ExperimentError, match="no bleu of 'dot @ 7'; it has dot @ 5, dot @ 10"):
        values_of(measured, "dot @ 7", "bleu")


def test_page_lists_studies_that_were_not_run() -> None:
    study = Study("Some claim", "", systems={"dot": []}, settings=[], measures=["bleu"])
    page = study_page(KINDS["claims"], [ShownStudy("some_claim", study, result={})])
    assert "| Some claim | not run | – | – |" in page
    assert "## Some claim" not in page
