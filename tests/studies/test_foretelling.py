"""Rules that foretell which seeds fail, the shares that they are judged by, and their pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from attnlab.errors import ExperimentError
from attnlab.evaluation.shares import Share
from attnlab.project import STUDIES
from attnlab.studies.expectations import Expectation
from attnlab.studies.foretelling import Foretelling, Foretold
from attnlab.studies.measured_rows import Learnt, MeasuredRows
from attnlab.studies.study import Study, read_study
from attnlab.studies.study_figure import figure_of
from attnlab.studies.study_kinds import KINDS
from attnlab.studies.study_page import ShownStudy, Verdict, own_page, study_page
from attnlab.studies.study_result import result_of

RULE = Foretelling("attention_entropy", at=50, below=0.5)
# {seed: (entropy after 50 steps, exact match at the end)}: 1 and 2 fail, of which 1 is foretold,
# and so is 5, which learns.
PLAIN = {1: (0.2, 0.1), 2: (0.9, 0.2), 3: (1.0, 1.0), 4: (1.1, 0.99), 5: (0.4, 1.0), 6: (0.7, 0.95)}
REMEDIED = {seed: (1.0, 0.3 if seed == 2 else 1.0) for seed in PLAIN}


def rows_of(system: str, values: dict[int, tuple[float, float]]) -> list[dict[str, Any]]:
    rows = []
    for seed, (entropy, quality) in values.items():
        early = {"at": 50.0, "attention_entropy": entropy, "exact_match": 0.0}
        late = {"at": 500.0, "attention_entropy": 1.0, "exact_match": quality}
        rows += [{"system": system, "seed": seed, **place} for place in (early, late)]
    return rows


ROWS = rows_of("plain", PLAIN) + rows_of("remedied", REMEDIED)


def measured(rule: Foretelling | None = RULE) -> MeasuredRows:
    learnt = Learnt("exact_match", 0.9)
    return MeasuredRows(ROWS, ["plain", "remedied"], learnt, foretelling=rule)


def expectation(**given: Any) -> Expectation:
    return Expectation(**{"says": "so", "more": "plain", "less": 0.2, **given})


def study(**given: Any) -> Study:
    settings: dict[str, Any] = {
        "title": "A question",
        "text": "How.",
        "systems": {"plain": [], "remedied": []},
        "settings": [],
        "measures": ["attention_entropy"],
        "measurement": "history",
        "learnt": {"exact_match": 0.9},
        "foretell": {"measure": "attention_entropy", "at": 50, "below": 0.5},
        "seeds": 6,
    }
    return Study(**{**settings, **given})


def test_rule_names_failures_and_spares_the_others() -> None:
    foretold = measured().foretold("plain")
    assert foretold.failures == Share(1, 2)
    assert foretold.spared == Share(3, 4)
    above = Foretold(Foretelling("attention_entropy", at=50, above=0.8), {1: 0.9, 2: 0.7}, {3: 0.8})
    assert above.failures == Share(1, 2)
    assert above.spared == Share(1, 1)


def test_area_under_the_curve_is_that_of_mann_and_whitney() -> None:
    failed, learnt = [0.2, 0.9, 0.4, 0.5], [1.0, 1.1, 0.4, 0.7, 0.45]
    foretold = Foretold(RULE, dict(enumerate(failed)), dict(enumerate(learnt)))
    area = foretold.area_under_curve()
    assert area is not None
    value, low, high = area
    wins = stats.mannwhitneyu(learnt, failed).statistic
    assert value == pytest.approx(wins / (len(failed) * len(learnt)))
    assert 0 <= low < value < high <= 1


def test_area_under_the_curve_is_one_where_the_rule_separates_and_half_by_chance() -> None:
    apart = Foretold(RULE, {1: 0.1, 2: 0.2}, {3: 0.8, 4: 0.9})
    assert apart.area_under_curve() == (1.0, 1.0, 1.0)
    equal = Foretold(RULE, {1: 0.5, 2: 0.5}, {3: 0.5, 4: 0.5})
    assert equal.area_under_curve() == (0.5, 0.5, 0.5)
    assert Foretold(RULE, {}, {3: 0.8}).area_under_curve() is None


@pytest.mark.parametrize(
    ("given", "value", "p"),
    [
        ({"measure": "foretold", "less": 0.2}, 0.3, stats.binomtest(1, 2, 0.2).pvalue),
        ({"measure": "spared", "less": 0.2}, 0.55, stats.binomtest(3, 4, 0.2).pvalue),
        (
            {"measure": "rescued", "more": "remedied", "less": "plain", "by": 0.25},
            0.5,
            stats.binomtest(1, 2, 0.25).pvalue,
        ),
        ({"measure": "learnt", "less": 0.2}, 4 / 6 - 0.2, stats.binomtest(4, 6, 0.2).pvalue),
    ],
)
def test_shares_are_tested_by_exact_binomials(given, value, p) -> None:
    finding = expectation(**given).finding(measured())
    assert finding.value == pytest.approx(value)
    assert finding.p_holds == pytest.approx(p)
    assert finding.method == "exact, binomial"


def test_share_of_no_seed_is_not_tested() -> None:
    """Of seeds 3 to 6 none fails."""
    rows = [row for row in ROWS if row["seed"] > 2]
    late = MeasuredRows(rows, ["plain"], Learnt("exact_match", 0.9), foretelling=RULE)
    finding = expectation(measure="foretold").finding(late)
    assert finding.p is None
    assert "no such seed" in finding.method


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"measure": "foretold", "less": "remedied"}, "less must be a number for foretold"),
        ({"measure": "spared", "less": "remedied"}, "less must be a number for spared"),
        ({"measure": "rescued", "less": 0.5}, "less must be a system for rescued"),
    ],
)
def test_expectation_on_shares_of_the_wrong_kind_is_refused(given, said) -> None:
    with pytest.raises(ValueError, match=said):
        expectation(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"measurement": "evaluation"}, "foretell needs learnt, and measurement: history"),
        ({"learnt": {}}, "foretell needs learnt"),
        (
            {"foretell": {}, "expect": [expectation(measure="spared")]},
            "the measure spared needs the study's foretell",
        ),
        (
            {"foretell": {}, "learnt": {}, "expect": [expectation(measure="foretold")]},
            "the measure foretold needs the study's learnt",
        ),
    ],
)
def test_study_whose_rule_cannot_be_asked_is_refused(given, said) -> None:
    with pytest.raises(ValueError, match=said):
        study(**given)


@pytest.mark.parametrize("bounds", [{}, {"below": 0.1, "above": 0.2}])
def test_rule_has_one_bound(bounds) -> None:
    with pytest.raises(ValueError, match="one of below and above"):
        Foretelling("attention_entropy", at=50, **bounds)


def test_rule_at_a_step_without_validation_says_what_was_measured() -> None:
    rule = Foretelling("attention_entropy", at=70, below=0.5)
    with pytest.raises(ExperimentError, match="'plain @ 70'; of 'plain' @ 50, 500 it has"):
        measured(rule).foretold("plain")


def test_study_in_a_file_may_foretell(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: Mine\ntext: How.\nsystems: {plain: []}\nsettings: []\n"
        "measures: [attention_entropy]\nmeasurement: history\nlearnt: {exact_match: 0.9}\n"
        "foretell: {measure: attention_entropy, at: 50, below: 0.5}\n"
    )
    assert read_study(path).foretelling == RULE
    path.write_text(path.read_text().replace("below: 0.5", "beneath: 0.5"))
    with pytest.raises(ExperimentError, match=r"mine\.yaml: foretell\.beneath"):
        read_study(path)


def test_page_of_a_question_has_the_rule_the_shares_and_a_figure_of_the_early_values() -> None:
    asked = study(background="Why.", limits="What not.", expect=[expectation(measure="foretold")])
    result = result_of(asked, ROWS) | {
        "run_seeds": 6, "run_settings": [], "machine": "M", "cpu_minutes": 1.0,
    }  # fmt: skip
    page = own_page(
        KINDS["questions"],
        ShownStudy("mine", asked, result),
        Verdict("undecided", ["undecided"], [None]),
    )
    assert "A seed is foretold to fail with attention entropy after 50 steps below 0.50" in page
    shares = "4 of 6 (0.22 to 0.96) | 1 of 2 (0.01 to 0.99) | 1 of 4 (0.01 to 0.81)"
    assert f"| plain | {shares} |" in page
    assert "## Why it is asked\n\nWhy." in page
    assert "## What it does not say\n\nWhat not." in page
    assert "](../studies/mine/figure.png)" in page
    (axes,) = figure_of(asked, ROWS).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["plain: learnt", "plain: failed", "remedied: learnt", "remedied: failed"]
    assert axes.get_xlabel() == "attention entropy after 50 steps"


def test_page_of_all_questions_leads_to_each() -> None:
    page = study_page(KINDS["questions"], [ShownStudy("mine", study(), result={})])
    assert "| [A question](questions/mine.md) | not run |" in page
    assert "**Not run.**" not in page


@pytest.mark.parametrize(
    "path", sorted((STUDIES / "questions").glob("*.yaml")), ids=lambda path: path.stem
)
def test_each_question_says_why_it_is_asked_and_what_it_does_not_say(path: Path) -> None:
    asked = read_study(path)
    assert asked.background
    assert asked.limits
    assert asked.family.startswith("questions") or len(asked.primary) == 1
    assert asked.first_seed > 100
