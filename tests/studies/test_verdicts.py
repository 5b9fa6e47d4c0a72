"""Verdicts of studies: what expectations find, which seeds count, published figures, the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnlab.errors import ExperimentError
from attnlab.evaluation.significance import holm
from attnlab.studies.expectations import Expectation, Outcome, Published, Reached, finding_of_p
from attnlab.studies.measured_rows import Learnt, MeasuredRows, SentenceCovariances
from attnlab.studies.study import Study, find_study
from attnlab.studies.study_figure import figure_of
from attnlab.studies.study_kinds import KINDS
from attnlab.studies.study_page import ShownStudy, study_page, verdicts_of
from attnlab.studies.study_result import look_of, result_of
from attnlab.studies.verdicts import (
    corrected_p_values,
    outcomes_of_family,
    verdict_on_claim,
    verdict_on_replication,
)

Row = dict[str, Any]


def rows(**systems: list[float]) -> list[Row]:
    return [
        {"system": name, "seed": seed, "at": None, "bleu": value, "aer": value / 100, "tau": value}
        for name, values in systems.items()
        for seed, value in enumerate(values, start=1)
    ]


def measured(found: Sequence[Row], **settings: Any) -> MeasuredRows:
    models = dict.fromkeys(row["system"].partition(":")[0] for row in found)
    return MeasuredRows(found, list(models), **settings)


FOUND = rows(
    good=[30, 31, 32], near=[30.1, 31.2, 31.9], bad=[20, 22, 21], wild=[10, 50, 30], one=[40],
    still=[31, 31, 31], motionless=[31, 31, 31],
)  # fmt: skip


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
        ("still", "motionless", 0, 3, "undecided"),
        ("still", "motionless", 0, None, "undecided"),
        ("still", 25.0, 0, None, "undecided"),
    ],
)
def test_expectation_is_decided_by_the_p_of_its_side(
    more: str, less: str | float, by: float, within: float | None, outcome: str
) -> None:
    finding = Expectation("", "bleu", more, less, by, within).finding(measured(FOUND))
    assert finding.outcome() == outcome


def test_alike_is_shown_with_the_interval_of_two_one_sided_tests() -> None:
    finding = Expectation("", "bleu", "good", "near", within=3).finding(measured(FOUND))
    expected = stats.ttest_ind([30, 31, 32], [30.1, 31.2, 31.9], equal_var=False)
    assert (finding.low, finding.high) == pytest.approx(tuple(expected.confidence_interval(0.9)))
    assert finding.confidence == pytest.approx(0.9)


def parts(name: str, **of_parts: list[float]) -> list[Row]:
    found = rows(**of_parts)
    return [row | {"system": f"{name}: {row['system']}"} for row in found]


def test_two_measures_of_one_model_are_paired_by_seed() -> None:
    """Seeds differ by much, the two measures of each seed by little."""
    found = [
        *parts("dates", attention=[80, 90, 70], gradient=[81, 91.5, 71.2]),
        *parts("copy", attention=[80, 90, 70]),
    ]
    paired = Expectation("", "bleu", "dates: gradient", "dates: attention").finding(measured(found))
    apart = Expectation("", "bleu", "dates: gradient", "copy: attention").finding(measured(found))
    assert paired.p == pytest.approx(stats.ttest_1samp([1.0, 1.5, 1.2], 0).pvalue)
    assert paired.outcome() == "holds"
    assert apart.outcome() == "undecided"
    assert "paired" in paired.method
    assert "Welch" in apart.method


def test_places_of_one_model_are_paired_too() -> None:
    found = [
        {"system": "dot", "seed": seed, "at": at, "bleu": 90.0 - seed * 10 - at + seed / 10 * at}
        for seed in (1, 2, 3)
        for at in (5, 10)
    ]
    finding = Expectation("", "bleu", "dot @ 5", "dot @ 10").finding(measured(found))
    assert finding.method == "paired t, 3 seeds"


def test_model_of_a_part_is_the_longest_name_that_it_begins_with() -> None:
    found = measured(FOUND)
    found._models = ["simple", "simple: LSTM"]
    assert found.model_of("simple: LSTM: uniform @ 5") == "simple: LSTM"
    assert found.model_of("simple: GRU") == "simple"


LEARNING = rows(steady=[30, 31, 32, 31], collapsing=[30.2, 31.1, 2, 31.8])
THRESHOLD = Learnt("bleu", 20)


def test_means_are_over_the_seeds_that_learnt() -> None:
    found = measured(LEARNING, learnt=THRESHOLD)
    finding = Expectation("", "bleu", "steady", "collapsing", within=3).finding(found)
    expected = stats.ttest_ind([30, 31, 32, 31], [30.2, 31.1, 31.8], equal_var=False)
    assert (finding.low, finding.high) == pytest.approx(tuple(expected.confidence_interval(0.9)))
    assert finding.outcome() == "holds"
    assert found.share_that_learnt("collapsing").count == 3
    everyone = Expectation("", "bleu", "steady", "collapsing", within=3).finding(measured(LEARNING))
    assert everyone.outcome() == "undecided"


def test_threshold_of_a_measure_where_less_is_better_is_a_most() -> None:
    found = measured(LEARNING, learnt=Learnt("aer", 0.2))
    assert found.learnt_by_seed("collapsing") == {1: False, 2: False, 3: True, 4: False}


def test_threshold_of_a_measure_that_was_not_measured_is_a_sentence() -> None:
    found = measured(LEARNING, learnt=Learnt("accuracy", 0.5))
    with pytest.raises(ExperimentError, match="learnt names 'accuracy', which the study did not"):
        found.learnt_by_seed("steady")


def test_system_without_a_seed_that_learnt_is_not_compared() -> None:
    found = measured(LEARNING, learnt=Learnt("bleu", 31.9))
    finding = Expectation("", "bleu", "steady", "collapsing").finding(found)
    assert (finding.value, finding.p) == (None, None)
    assert finding.method == "not tested: no seed learnt"


@pytest.mark.parametrize(("same_seeds", "p"), [(False, 1 / 126), (True, 1 / 16)])
def test_shares_that_learnt_are_compared_as_counts(same_seeds: bool, p: float) -> None:
    found = measured(rows(without=[1, 2, 1, 3, 2], remedy=[30, 31, 30, 29, 31]), learnt=THRESHOLD)
    expected = Expectation("", "learnt", "remedy", "without", same_seeds=same_seeds)
    finding = expected.finding(found)
    assert finding.value == 1.0
    assert finding.p == pytest.approx(p)


def test_share_that_learnt_is_compared_with_a_number() -> None:
    found = measured(rows(dot=[30] * 9 + [1]), learnt=THRESHOLD)
    finding = Expectation("", "learnt", "dot", 0.5).finding(found)
    assert finding.p == pytest.approx(22 / 1024)
    assert finding.outcome() == "holds"
    fewer = Expectation("", "learnt", "dot", 0.5, by=0.2).finding(found)
    assert fewer.outcome() == "undecided"


def test_scatter_of_the_sentences_makes_a_difference_less_certain() -> None:
    covariances = {("good", "good"): 4.0, ("bad", "bad"): 4.0, ("good", "bad"): 1.0}
    covariances["bad", "good"] = 1.0
    sentences = SentenceCovariances({"bleu": covariances}, sentences=100)
    expected = Expectation("", "bleu", "good", "bad")
    finding = expected.finding(measured(FOUND, sentences=sentences))
    parts_of_variance = [(1 / 3, 2), (1 / 3, 2), (6.0, 99)]
    total = sum(variance for variance, _ in parts_of_variance)
    degrees = total**2 / sum(variance**2 / degree for variance, degree in parts_of_variance)
    assert finding.p == pytest.approx(2 * stats.t.sf(10 / math.sqrt(total), degrees))
    assert finding.method == "Welch's t, 3 seeds, 100 sentences"


@pytest.mark.parametrize(
    ("measure", "value", "tolerance", "reached"),
    [
        ("bleu", 31.5, 0.5, "yes"),
        ("bleu", 31.6, 0.5, "undecided"),
        ("bleu", 40.0, 0.5, "no"),
        ("bleu", 10.0, 0.5, "yes"),  # better is reached
        ("aer", 0.30, 0.02, "yes"),
        ("aer", 0.25, 0.02, "no"),
        ("aer", 0.50, 0.02, "yes"),
        ("tau", 10.0, 0.5, "no"),  # no direction is better
        ("tau", 30.6, 0.5, "yes"),
    ],
)
def test_published_figure_is_reached_within_its_tolerance_or_better(
    measure: str, value: float, tolerance: float, reached: str
) -> None:
    assert Published("good", measure, value, tolerance).reached(measured(FOUND)) == reached


def test_p_values_of_a_family_are_corrected_once() -> None:
    p_values = [0.01, 0.02, 0.04]
    findings = [finding_of_p(p, 1.0) for p in p_values[:2]] + [
        finding_of_p(None, None),
        finding_of_p(1.0, 0.04),
    ]
    assert holm(p_values) == pytest.approx([0.03, 0.04, 0.04])
    assert outcomes_of_family(findings) == ["holds", "holds", "undecided", "does not hold"]
    assert outcomes_of_family([*findings, finding_of_p(0.03, 1.0)]) == ["holds", *["undecided"] * 4]
    assert corrected_p_values(findings) == pytest.approx([0.03, 0.04, None, 0.04])


def test_expectation_that_was_not_run_counts_as_one_that_cannot_be_rejected() -> None:
    """So no verdict that stands now falls when it is run, whatever its p is then."""
    findings = [finding_of_p(p, 1.0) for p in (0.01, 0.02)]
    waiting = corrected_p_values(findings, not_run=2)
    assert waiting == pytest.approx([0.04, 0.06])
    for p in (0.0001, 0.015, 0.5, 1.0):
        once_run = corrected_p_values([*findings, *[finding_of_p(p, 1.0)] * 2])
        assert all(late <= now for late, now in zip(once_run, waiting, strict=False))


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "does not hold"], "depends on the score"),
        (["holds", "undecided"], "undecided"),
        (["undecided", "does not hold"], "does not hold"),
        (["undecided"], "undecided"),
        ([], "undecided"),
    ],
)
def test_verdict_on_a_claim(outcomes: list[Outcome], verdict: str) -> None:
    assert verdict_on_claim(outcomes, "the score") == verdict


@pytest.mark.parametrize(
    ("reached", "outcomes", "is_comparable", "verdict"),
    [
        (["yes", "yes"], ["undecided"], True, "reproduced"),
        (["yes", "yes"], ["does not hold"], True, "contradicted"),
        (["yes", "yes"], ["holds"], False, "direction reproduced"),
        (["yes", "no"], ["holds"], True, "direction reproduced"),
        (["no"], ["does not hold"], True, "contradicted"),
        (["no"], ["does not hold"], False, "not comparable"),
        (["yes"], ["holds", "does not hold"], False, "not comparable"),
        (["no"], ["undecided"], False, "undecided"),
        (["yes"], [], False, "not comparable"),
        (["no"], [], True, "contradicted"),
        (["undecided"], [], True, "undecided"),
    ],
)
def test_verdict_on_a_replication(
    reached: list[Reached], outcomes: list[Outcome], is_comparable: bool, verdict: str
) -> None:
    assert verdict_on_replication(reached, outcomes, is_comparable) == verdict


def test_values_are_those_of_a_system_at_a_place() -> None:
    found = measured(
        [
            {"system": "dot", "seed": 1, "at": 5, "bleu": 1.0},
            {"system": "dot", "seed": 1, "at": 10, "bleu": 2.0},
        ]
    )
    assert found.by_seed("dot @ 10", "bleu") == {1: 2.0}
    with pytest.raises(ExperimentError, match="no bleu of 'dot @ 7'; of 'dot' @ 5, 10 it has bleu"):
        found.by_seed("dot @ 7", "bleu")


def study(**settings: Any) -> Study:
    defaults: dict[str, Any] = {
        "title": "Some claim",
        "text": "",
        "systems": {name: [] for name in ("good", "bad", "near")},
        "settings": [],
        "measures": ["bleu"],
    }
    return Study(**(defaults | settings))


@pytest.mark.parametrize(
    ("expect", "settings", "message"),
    [
        ([Expectation("", "bleu", "good", "bad")] * 2, {}, "primary: true"),
        ([Expectation("", "bleu", "good", "bad", primary=True)] * 2, {}, "depends_on must say"),
        ([Expectation("", "bleu", "good", "near", within=1)], {}, "learnt must say"),
        ([Expectation("", "learnt", "good", "near")], {}, "needs the study's learnt"),
        ([], {"learnt": {"bleu": 1.0, "aer": 0.5}}, "one measure, got bleu, aer"),
    ],
)
def test_study_that_could_not_be_judged_is_refused(
    expect: list[Expectation], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        study(expect=expect, **settings)


def test_table_has_the_share_that_learnt_and_cuts_intervals_at_the_range() -> None:
    systems = {name: [] for name in ("steady", "collapsing")}
    judged = study(systems=systems, learnt={"bleu": 20.0})
    found = rows(steady=[99, 100, 93, 100], collapsing=[30, 31, 2, 31])
    result = result_of(judged, found)
    assert result["headings"] == ["system", "seeds that learnt", "BLEU ↑"]
    assert result["table"][0][1] == "4 of 4 (0.40 to 1.00)"
    assert result["table"][0][2].endswith("to 100.00; median 99.50)")
    assert result["table"][1][1] == "3 of 4 (0.19 to 0.99)"
    assert result["table"][1][2].startswith("30.67 (")


def shown(name: str, values: dict[str, list[float]], **settings: Any) -> ShownStudy:
    expect = [Expectation("good is better", "bleu", "good", "bad")]
    judged = study(expect=expect, **settings)
    conditions = {"run_seeds": 3, "cpu_minutes": 1.0, "run_settings": [], "machine": "a machine"}
    return ShownStudy(name, judged, result_of(judged, rows(**values)) | conditions)


def test_family_is_corrected_on_the_page_of_all_studies() -> None:
    """Alone each of the two is certain at 0.05; together only the clear one is."""
    clear = shown("clear", {"good": [30, 31, 32], "bad": [20, 22, 21]}, family="claims")
    close = shown("close", {"good": [30, 31, 32], "bad": [28, 28.2, 27.8]}, family="claims")
    p = close.findings[0].p
    assert p is not None
    assert 0.025 < p < 0.05
    many = [shown(f"{number}", {"good": [1, 2, 3], "bad": [1, 3, 2.5]}, family="claims")
            for number in range(3)]  # fmt: skip
    assert verdicts_of([clear, close])["close"].words == "holds"
    verdicts = verdicts_of([clear, close, *many])
    assert verdicts["clear"].words == "holds"
    assert verdicts["close"].words == "undecided"
    assert verdicts["close"].outcomes == ["undecided"]


def test_studies_of_a_family_that_were_not_run_are_counted_and_said() -> None:
    close = shown("close", {"good": [30, 31, 32], "bad": [28, 28.2, 27.8]}, family="claims")
    waiting = ShownStudy("waiting", close.study, result={})
    assert verdicts_of([close])["close"].words == "holds"
    assert verdicts_of([close, waiting])["close"].words == "undecided"
    page = study_page(KINDS["claims"], [close, waiting])
    assert "The family *claims* has 2 primary expectations, 1 of them not run yet." in page
    p = close.findings[0].p
    assert p is not None
    assert f"| {p:.3f} (Holm: {2 * p:.3f}) | undecided |" in page


def test_single_expectation_decides_unless_it_is_said_not_to() -> None:
    asked = Expectation("good is better", "bleu", "good", "bad")
    aside = replace(asked, primary=False)
    assert study(expect=[asked]).primary == [asked]
    assert study(expect=[aside]).primary == []


def test_page_asks_the_questions_of_studies_that_were_not_run() -> None:
    asked = shown("some_claim", {"good": [30, 31, 32], "bad": [20, 22, 21]}).study
    page = study_page(KINDS["claims"], [ShownStudy("some_claim", asked, result={})])
    assert "| [Some claim](#some_claim) | not run | – | – | – |" in page
    assert '<a id="some_claim"></a>\n## Some claim\n\n**Not run.**' in page
    assert "| **good is better** | BLEU |" in page


def test_page_does_not_show_an_answer_to_another_question() -> None:
    found = shown("some_claim", {"good": [30, 31, 32], "bad": [20, 22, 21]})
    other = ShownStudy(found.name, found.study, found.result, is_judged=False)
    page = study_page(KINDS["claims"], [other])
    assert "| [Some claim](#some_claim) | asked anew, not run anew | – | – | – |" in page
    assert "**Asked anew, and not run anew.**" in page
    assert "+10.00" not in page


def test_page_says_what_was_known_before_and_marks_what_decides() -> None:
    found = shown("some_claim", {"good": [30, 31, 32], "bad": [20, 22, 21]}, known="A pilot.")
    page = study_page(KINDS["claims"], [found])
    assert "| [Some claim](#some_claim) | holds | yes | 3 | 1 |" in page
    assert "Known before: A pilot. The question, as it stands now, was written after" in page
    assert "| **good is better** | BLEU | +10.00 (" in page
    assert page.count("| holds |\n") == 1


def test_page_of_a_registered_study_names_the_commit() -> None:
    found = shown("some_claim", {"good": [30, 31, 32], "bad": [20, 22, 21]})
    registered = {"digest": "d", "commit": "0123456789abcdef", "before": True}
    result = found.result | {"registered": registered, "revision": "fedcba9876543210"}
    page = study_page(KINDS["claims"], [ShownStudy("some_claim", found.study, result)])
    assert "| [Some claim](#some_claim) | holds | no | 3 | 1 |" in page
    assert "Revision fedcba987654. Registered by 0123456789ab." in page
    late = result | {"registered": registered | {"before": False}}
    page = study_page(KINDS["claims"], [ShownStudy("some_claim", found.study, late)])
    assert "No commit had the question" in page


def test_mean_of_seeds_that_all_agree_has_no_interval() -> None:
    result = result_of(study(systems={"still": []}), rows(still=[31, 31, 31]))
    assert result["table"] == [["still", "31.00"]]


LOOKS = [3, 6, 9]


def looking(**settings: Any) -> Study:
    expect = [Expectation("good is better", "bleu", "good", "bad")]
    return study(expect=expect, seeds=9, looks=LOOKS, **settings)


def drawn(seeds: int, lead: float) -> list[Row]:
    random = np.random.default_rng(4)
    bad = (20 + random.normal(size=9))[:seeds].tolist()
    good = (20 + lead + random.normal(size=9))[:seeds].tolist()
    return rows(good=good, bad=bad)


def test_study_ends_at_the_look_that_decides_it() -> None:
    look = look_of(looking(), drawn(6, lead=5.0), SentenceCovariances())
    assert look.ends
    assert look.why.startswith("decided at look 2 of 3")


def test_first_look_needs_far_more_than_one_in_twenty() -> None:
    found = rows(good=[30, 31, 32], bad=[28, 28.2, 27.8])
    look = look_of(looking(), found, SentenceCovariances())
    assert not look.ends
    assert look.level is not None
    assert look.level < 0.001
    assert result_of(looking(), found)["verdict_alone"] == "undecided"
    assert result_of(study(expect=looking().expect), found)["verdict_alone"] == "holds"


def test_study_that_would_hardly_be_decided_is_given_up() -> None:
    look = look_of(looking(), drawn(6, lead=0.0), SentenceCovariances())
    assert look.ends
    assert look.why.startswith("given up at look 2 of 3")


def test_last_look_ends_a_study() -> None:
    look = look_of(looking(), drawn(9, lead=0.9), SentenceCovariances())
    assert look.ends
    assert look.seeds == 9


def test_seeds_between_two_looks_decide_nothing() -> None:
    judged = looking()
    found = drawn(7, lead=9.0)
    assert not look_of(judged, found, SentenceCovariances()).ends
    assert result_of(judged, found)["verdict_alone"] == "undecided"
    assert judged.counts_of_seeds(7) == [7]
    assert judged.counts_of_seeds(None) == [3, 6, 9]
    assert judged.counts_of_seeds(6) == [3, 6]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"looks": [5, 3, 9]}, "looks must rise"),
        ({"looks": [2, 9]}, "looks must rise from 3"),
        ({"looks": [3, 6]}, "seeds, which is 9"),
        ({"looks": LOOKS, "family": "claims"}, "no family"),
    ],
)
def test_looks_that_could_not_be_judged_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        study(expect=[Expectation("", "bleu", "good", "bad")], seeds=9, **settings)


def test_page_shows_the_look_that_ended_a_study() -> None:
    judged = looking()
    conditions = {"run_seeds": 6, "cpu_minutes": 1.0, "run_settings": [], "machine": "a machine"}
    result = result_of(judged, drawn(6, lead=5.0)) | conditions
    page = study_page(KINDS["claims"], [ShownStudy("some_claim", judged, result)])
    assert "It was decided at look 2 of 3, at a level of" in page
    assert "| holds |" in page


def test_value_of_paired_systems_is_over_the_seeds_that_both_have() -> None:
    """Each fails on another seed."""
    found = rows(one=[1.0, 9.0, 5.0, 6.0], other=[8.0, 2.0, 4.0, 4.5])
    both = measured(found, paired=True, learnt=Learnt("bleu", 3.0))
    finding = Expectation("", "bleu", "one", "other").finding(both)
    assert finding.value == pytest.approx(((5 - 4) + (6 - 4.5)) / 2)
    assert finding.low is not None
    assert finding.high is not None
    assert finding.low <= finding.value <= finding.high


def test_measure_that_one_system_lacks_is_a_dash_and_no_error() -> None:
    """A model without attention has no alignments."""
    attends, blind = rows(dot=[1.0, 2.0, 3.0]), rows(none=[0.0, 1.0, 2.0])
    for row in blind:
        del row["aer"]
    study = Study("A", "How.", {"dot": [], "none": []}, [], ["bleu", "aer"], seeds=3)
    of_dot, of_none = result_of(study, [*attends, *blind])["table"]
    assert of_none[-1] == "–"
    assert of_dot[-1] != "–"
    assert len(figure_of(study, [*attends, *blind]).axes) == 2


def test_study_of_ones_own_that_would_write_over_ours_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "scan.yaml"
    mine.touch()
    with pytest.raises(ExperimentError, match="scan is the name of one of attnlab's studies"):
        find_study(str(mine))
    assert find_study("scan").name == "scan.yaml"
