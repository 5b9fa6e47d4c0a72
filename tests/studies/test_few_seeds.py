"""What few seeds would have claimed, scatters of systems, and the studies that ask for both."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnlab.errors import ExperimentError
from attnlab.studies.expectations import Expectation
from attnlab.studies.few_seeds import (
    COMPARISONS,
    FewSeeds,
    claims_of_itself,
    claims_of_two,
    scatter_of,
)
from attnlab.studies.measured_rows import MeasuredRows, SentenceCovariances, at_place
from attnlab.studies.study import Study, read_study
from attnlab.studies.study_kinds import KINDS
from attnlab.studies.study_page import ShownStudy, study_page
from attnlab.studies.study_result import result_of

# Four standard errors of a share near a half
TOLERANCE = 4 * 0.5 / COMPARISONS**0.5
FEW = FewSeeds("bleu", seeds=[1, 3], differences=[1.0, 2.0])
ONE = np.array([30.0, 31.5, 29.0, 33.0, 30.5, 31.0, 28.0, 32.0])
OTHER = np.array([31.0, 32.5, 30.0, 33.5, 30.5, 32.0, 29.0, 33.0])


def study(**given: Any) -> Study:
    settings: dict[str, Any] = {
        "title": "A question",
        "text": "How.",
        "systems": {"one": [], "other": []},
        "settings": [],
        "measures": ["bleu"],
        "few_seeds": {"measure": "bleu", "seeds": [1, 3], "differences": [1.0, 2.0]},
        "seeds": 8,
    }
    return Study(**{**settings, **given})


def rows() -> list[dict[str, Any]]:
    return [
        {"system": name, "seed": seed, "at": None, "bleu": float(value)}
        for name, values in (("one", ONE), ("other", OTHER))
        for seed, value in enumerate(values, start=1)
    ]


@pytest.mark.parametrize("seeds", [1, 3, 4])
def test_false_claims_are_those_of_all_pairs_of_groups(seeds: int) -> None:
    gaps, significant = [], []
    for both in combinations(range(len(ONE)), 2 * seeds):
        for places in combinations(both, seeds):
            ours = ONE[list(places)]
            theirs = ONE[[place for place in both if place not in places]]
            gaps.append(abs(ours.mean() - theirs.mean()))
            if seeds > 1:
                p = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
                significant.append(p < 0.05)

    found = claims_of_itself(ONE, seeds, FEW)
    expected = [np.mean(np.array(gaps) >= limit - 1e-9) for limit in (1.0, 2.0)]
    assert found.apart == pytest.approx(expected, abs=TOLERANCE)
    assert found.reversed is None
    if seeds == 1:
        assert found.significant is None
    else:
        assert found.significant == pytest.approx(np.mean(significant), abs=TOLERANCE)


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_worse_system_is_ahead_as_often_as_among_all_pairs_of_groups(seeds: int) -> None:
    groups = list(combinations(range(len(ONE)), seeds))
    gaps = np.array(
        [
            OTHER[list(ours)].mean() - ONE[list(theirs)].mean()
            for ours in groups
            for theirs in groups
        ]
    )
    found = claims_of_two(OTHER, ONE, seeds, FEW)
    assert found.reversed == pytest.approx(np.mean(gaps < 0), abs=TOLERANCE)
    expected = [np.mean(np.abs(gaps) >= limit - 1e-9) for limit in (1.0, 2.0)]
    assert found.apart == pytest.approx(expected, abs=TOLERANCE)


def test_systems_that_do_not_scatter_claim_nothing_of_themselves() -> None:
    found = claims_of_itself(np.full(8, 30.0), 3, FEW)
    assert found.apart == [0.0, 0.0]
    assert found.significant == 0.0


def test_interval_of_a_standard_deviation_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    covered = []
    for _ in range(2000):
        found = scatter_of(random.normal(scale=2.0, size=6))
        assert found is not None
        covered.append(found.low <= 2.0 <= found.high)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
    assert scatter_of(np.array([1.0])) is None


def test_scatters_are_compared_by_the_distances_from_the_medians() -> None:
    measured = MeasuredRows(rows(), ["one", "other"])
    expected = Expectation("so", "bleu", "other", "one", scatter=True)
    finding = expected.finding(measured)
    far, near = np.abs(OTHER - np.median(OTHER)), np.abs(ONE - np.median(ONE))
    assert finding.value == pytest.approx(far.mean() - near.mean())
    every = stats.permutation_test(
        (far, near), lambda x, y: x.mean() - y.mean(), n_resamples=np.inf
    )
    assert finding.p == pytest.approx(every.pvalue, abs=0.02)
    assert expected.row(finding)[0] == "scatter of BLEU"


@pytest.mark.parametrize("given", [{"less": 30.0}, {"measure": "learnt"}])
def test_scatter_of_what_has_none_is_refused(given: dict[str, Any]) -> None:
    settings = {"says": "so", "measure": "bleu", "more": "one", "less": "other", **given}
    with pytest.raises(ValueError, match="scatter compares the seeds of two systems"):
        Expectation(**settings, scatter=True)


def test_tables_have_a_row_for_each_system_and_each_pair() -> None:
    sentences = SentenceCovariances({"bleu": {("one", "one"): 0.25}}, 450)
    result = result_of(study(), rows(), sentences)
    assert result["scatter_table"] == [
        ["one", "8", "1.62 (1.07 to 3.30)", "0.50"],
        ["other", "8", "1.57 (1.04 to 3.19)", "–"],
    ]
    compared = [row[:2] for row in result["few_seeds_table"]]
    names = ["one, and itself", "other, and itself", "other, and one"]
    assert compared == [[name, seeds] for name in names for seeds in ("1", "3")]
    assert result["few_seeds_table"][0][4:] == ["–", "–"]


def test_better_system_is_the_one_with_less_where_less_is_better() -> None:
    renamed = [
        {("token_error_rate" if key == "bleu" else key): value for key, value in row.items()}
        for row in rows()
    ]
    few = {"measure": "token_error_rate", "seeds": [2], "differences": [1.0]}
    result = result_of(study(few_seeds=few, measures=["token_error_rate"]), renamed)
    assert result["few_seeds_table"][-1][0] == "one, and other"


def test_page_shows_both_tables_and_says_what_they_are() -> None:
    asked = study()
    run = {"run_seeds": 8, "cpu_minutes": 3, "run_settings": [], "machine": "ours", "revision": ""}
    shown = ShownStudy("mine", asked, result_of(asked, rows()) | run)
    page = study_page(KINDS["claims"], [shown])
    assert "| system | seeds | standard deviation of BLEU | of the mean, by the sentences |" in page
    assert "| compared | seeds each | 1.00 apart or more | 2.00 apart or more |" in page
    assert "every claim of a difference is false" in page


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 5}, "few_seeds.seeds must be at most half of seeds, which is 5"),
        ({"measurement": "history"}, "few_seeds needs a measurement without an axis, got history"),
    ],
)
def test_studies_that_cannot_compare_few_seeds_are_refused(given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        study(**given)


def test_wrong_keys_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: A\ntext: How.\nsystems: {one: []}\nsettings: []\nmeasures: [bleu]\nseeds: 8\n"
        "few_seeds: {measure: bleu, seeds: [1], gaps: [1.0]}\n"
    )
    with pytest.raises(ExperimentError, match=r"mine\.yaml: few_seeds\.gaps"):
        read_study(path)


def test_number_of_the_seed_stands_where_a_system_says_so() -> None:
    systems = {
        "all": ["data=copy"],
        "order": ["data=copy", "seed=1", "training.batching.seed=<seed>"],
    }
    asked = study(systems=systems, first_seed=301, seeds=2, few_seeds={})
    points = asked.points(None, [])
    assert [(point.system, point.seed) for point in points] == [
        ("all", 301), ("order", 301), ("all", 302), ("order", 302),
    ]  # fmt: skip
    assert [point.experiment.seed for point in points] == [301, 1, 302, 1]
    orders = [point.experiment.training.batching.seed for point in points]
    assert orders == [None, 301, None, 302]


def test_wrong_measure_is_answered_with_those_of_the_system() -> None:
    measured = MeasuredRows(rows(), ["one", "other"])
    with pytest.raises(ExperimentError, match="no chrf of 'one'; of 'one' it has bleu"):
        measured.by_seed("one", "chrf")
    with pytest.raises(ExperimentError, match="no bleu of 'another'; it has one, other"):
        measured.by_seed("another", "bleu")


def test_places_of_many_digits_are_found() -> None:
    place = 1_048_577
    measured = MeasuredRows(
        [{"system": "one", "seed": 1, "at": float(place), "bleu": 3.0}], ["one"]
    )
    assert measured.by_seed(at_place("one", place), "bleu") == {1: 3.0}
    with pytest.raises(ExperimentError, match="of 'one' @ 1048577 it has bleu"):
        measured.by_seed(at_place("one", 7), "bleu")
