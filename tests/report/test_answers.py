"""The answers of a comparison: verdicts by the rule, factors, interactions and links."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from attnlab.report.answers import Answer, answers, interaction_sentence, rule, short_verdicts
from attnlab.report.compare import answer_in_markdown
from attnlab.report.compared_runs import ComparedRuns
from attnlab.report.comparison import MlflowLinks, write_comparison
from attnlab.report.comparison_tables import other_columns
from attnlab.report.disagreement import disagreement
from attnlab.report.factors import factors_of
from attnlab.report.findings import Findings, Wanted, findings_of
from attnlab.report.run_sources import runs_of_sweep
from made_sweep import write_crossed_sweep, write_sweep

# dot gains by teacher forcing alone.
CROSSED = {
    ("dot", "always"): 0.9,
    ("dot", "never"): 0.5,
    ("bahdanau", "always"): 0.5,
    ("bahdanau", "never"): 0.5,
}


def found(compared: ComparedRuns, measure: str = "bleu", baseline: str | None = None) -> Findings:
    wanted = Wanted(measure, baseline, 400, 0.95, 1)
    return findings_of(compared.runs, wanted, lambda *_: None)


def crossed(
    folder: Path, right: Mapping[tuple[str, str], float] = CROSSED, seeds: Sequence[int] = (1, 2, 3)
) -> ComparedRuns:
    return runs_of_sweep(write_crossed_sweep(folder, right, seeds), folder)


def of_systems(folder: Path, systems: dict[str, float], seeds: Sequence[int]) -> ComparedRuns:
    return runs_of_sweep(write_sweep(folder, systems, seeds, failed=False), folder)


def without_seeds(compared: ComparedRuns, system: str) -> ComparedRuns:
    """The runs without all but the first of a system."""
    first = next(run for run in compared.runs if run.system == system)
    runs = [run for run in compared.runs if run.system != system or run is first]
    return dataclasses.replace(compared, runs=runs)


def answered(findings: Findings) -> list[Answer]:
    return answers(findings, factors_of(findings))


@pytest.fixture(scope="module")
def with_seeds(tmp_path_factory: pytest.TempPathFactory) -> ComparedRuns:
    return crossed(tmp_path_factory.mktemp("crossed"))


@pytest.fixture(scope="module")
def findings(with_seeds: ComparedRuns) -> Findings:
    return found(with_seeds)


def test_answer_calls_a_far_better_system_better_with_its_interval(tmp_path: Path) -> None:
    findings = found(of_systems(tmp_path, {"dot": 0.95, "general": 0.3}, (1, 2, 3)))
    (answer,) = answered(findings)
    (pair,) = findings.pairs
    assert pair.low is not None
    assert answer == Answer(
        "certain",
        f"dot is better than general by {pair.difference:.2f} BLEU "
        f"({pair.low:.2f} to {pair.high:.2f}, 3 seeds).",
    )
    assert pair.low > 0
    assert pair.p is not None
    assert pair.p < 0.05


def test_answer_about_like_systems_names_the_leader_and_that_nothing_is_certain(
    tmp_path: Path,
) -> None:
    findings = found(of_systems(tmp_path, {"dot": 0.5, "general": 0.52}, (1, 2, 3)))
    (answer,) = answered(findings)
    assert answer.kind == "open"
    assert re.fullmatch(
        r"\w+ is ahead, but no difference is certain: to \w+ \(\+[\d.]+ BLEU; -[\d.]+ to \+[\d.]+, "
        r"3 seeds\)\.",
        answer.text,
    )


def test_undecided_answer_names_the_largest_gap_first(tmp_path: Path) -> None:
    systems = {"dot": 0.6, "general": 0.58, "concat": 0.5, "location": 0.56}
    compared = of_systems(tmp_path, systems, (1, 2))
    gaps = []
    for answer in answered(found(compared)):
        if answer.kind == "open":
            gaps = [float(gap) for gap in re.findall(r"\(\+([\d.]+) BLEU", answer.text)]
    assert len(gaps) > 1
    assert gaps == sorted(gaps, reverse=True)


def test_rule_names_the_correction_of_factors_where_there_are_some(
    findings: Findings, tmp_path: Path
) -> None:
    assert "own pairs" in rule(findings, factors_of(findings))
    plain = found(of_systems(tmp_path, {"dot": 0.9, "general": 0.3}, (1, 2)))
    assert "own pairs" not in rule(plain, factors_of(plain))


def test_answer_of_a_loss_gives_the_gain_of_the_lower_value(tmp_path: Path) -> None:
    findings = found(of_systems(tmp_path, {"dot": 0.9, "general": 0.3}, (1, 2, 3)), "token_nll")
    (answer,) = answered(findings)
    assert answer.text.startswith("dot is better than general by 0.6000 token NLL (0.5")


def test_answer_compares_every_system_with_the_baseline(tmp_path: Path) -> None:
    systems = {"dot": 0.95, "general": 0.55, "concat": 0.1}
    compared = of_systems(tmp_path, systems, (1, 2, 3))
    better, worse = answered(found(compared, baseline="general"))
    assert better.text.startswith("general is better than concat by ")
    assert worse.text.startswith("general is worse than dot by ")
    assert "-" not in worse.text


def test_short_verdicts_say_whether_the_difference_to_the_best_is_certain(tmp_path: Path) -> None:
    systems = {"dot": 0.5, "general": 0.52, "concat": 0.1}
    findings = found(of_systems(tmp_path, systems, (1, 2, 3)))
    best, near, far = findings.systems
    to_near, to_far = findings.pairs[:2]
    assert short_verdicts(findings) == {
        best.name: "ahead, certain against 1 of 2 (3 seeds)",
        near.name: f"uncertain: {to_near.difference:.2f} BLEU behind {best.name} (3 seeds)",
        far.name: f"worse, certain: {to_far.difference:.2f} BLEU behind {best.name} (3 seeds)",
    }


def test_short_verdict_on_the_best_is_that_of_the_answer(tmp_path: Path) -> None:
    far = found(of_systems(tmp_path / "far", {"dot": 0.95, "general": 0.3}, (1, 2, 3)))
    assert short_verdicts(far)["dot"] == "best, certain (3 seeds)"
    like = found(of_systems(tmp_path / "like", {"dot": 0.5, "general": 0.52}, (1, 2, 3)))
    assert short_verdicts(like)[like.systems[0].name] == "ahead, uncertain (3 seeds)"


def test_short_verdicts_of_a_loss_call_the_higher_value_worse(tmp_path: Path) -> None:
    findings = found(of_systems(tmp_path, {"dot": 0.9, "general": 0.3}, (1, 2, 3)), "token_nll")
    shown = short_verdicts(findings)
    assert shown["general"] == "worse, certain: 0.6000 token NLL behind dot (3 seeds)"


def test_short_verdicts_compare_with_the_baseline(tmp_path: Path) -> None:
    systems = {"dot": 0.95, "general": 0.55, "concat": 0.1}
    shown = short_verdicts(found(of_systems(tmp_path, systems, (1, 2, 3)), baseline="general"))
    assert shown["general"] == "baseline (3 seeds)"
    assert re.fullmatch(r"better, certain: [\d.]+ BLEU ahead of general \(3 seeds\)", shown["dot"])
    assert re.fullmatch(r"worse, certain: [\d.]+ BLEU behind general \(3 seeds\)", shown["concat"])


def test_short_verdicts_of_one_seed_each_say_that_there_is_none(tmp_path: Path) -> None:
    shown = short_verdicts(found(of_systems(tmp_path, {"dot": 0.95, "general": 0.1}, (3,))))
    assert shown == dict.fromkeys(["dot", "general"], "one seed: no verdict")


def test_short_verdicts_beside_a_system_with_one_seed_claim_nothing_of_it(tmp_path: Path) -> None:
    systems = {"dot": 0.9, "general": 0.3, "concat": 0.5}
    compared = of_systems(tmp_path, systems, (1, 2, 3))
    one_of_three = short_verdicts(found(without_seeds(compared, "concat")))
    assert one_of_three["concat"] == "one seed: no verdict"
    assert one_of_three["dot"] == "best of several seeds, certain (3 seeds)"

    two_of_three = short_verdicts(
        found(without_seeds(without_seeds(compared, "concat"), "general"))
    )
    assert two_of_three["dot"] == "others have one seed: no verdict"

    baseline = short_verdicts(found(without_seeds(compared, "concat"), baseline="concat"))
    assert baseline["concat"] == "baseline (one seed)"
    assert baseline["dot"] == "no verdict: one seed of concat"


def test_short_verdict_on_a_single_system_has_nothing_to_compare(tmp_path: Path) -> None:
    findings = found(of_systems(tmp_path, {"dot": 0.9}, (1, 2)))
    assert short_verdicts(findings) == {"dot": "nothing to compare it with"}


def test_one_seed_each_gives_no_verdict_no_letters_and_no_p(tmp_path: Path) -> None:
    compared = of_systems(tmp_path, {"dot": 0.95, "general": 0.1}, (3,))
    findings = found(compared)
    (answer,) = answered(findings)
    assert answer.kind == "unknown"
    assert answer.text.startswith("Nothing is known about which of the 2 systems is better")
    assert findings.letters["bleu"] == {}
    assert [pair.p for pair in findings.pairs] == [None]
    assert "needs two seeds or more" in rule(findings, factors_of(findings))
    assert compared.more_seeds == (
        "python pipelines/train.py -m model/attention=dot,general seed=3,1,2,4,5"
    )


def test_one_seed_each_names_no_best_run_where_all_are_equal(tmp_path: Path) -> None:
    findings = found(of_systems(tmp_path, {"dot": 1.0, "general": 1.0}, (1,)))
    (answer,) = answered(findings)
    assert answer.text.endswith("each has one seed. All runs have 100.00 BLEU.")


def test_a_system_with_one_seed_gets_no_verdict_beside_others(tmp_path: Path) -> None:
    systems = {"dot": 0.95, "general": 0.3, "concat": 0.1}
    compared = without_seeds(of_systems(tmp_path, systems, (1, 2, 3)), "concat")
    findings = found(compared)
    certain, unknown = answered(findings)
    assert certain.text.startswith("dot is better than general by ")
    assert "concat" not in certain.text
    assert unknown == Answer("unknown", "Nothing is known about concat: one seed.")
    assert set(findings.letters["bleu"]) == {"dot", "general"}
    # The best system is the best of those with seeds.
    lone_best = without_seeds(of_systems(tmp_path, systems, (1, 2, 3)), "dot")
    assert answered(found(lone_best))[0].text.startswith("general is better than concat")


def test_certain_answer_about_a_factor_precedes_an_open_one_about_systems(
    findings: Findings,
) -> None:
    assert "on average" not in answered(findings)[0].text
    uncertain = [dataclasses.replace(pair, p=1.0) for pair in findings.pairs]
    first, *others = answered(dataclasses.replace(findings, pairs=uncertain))
    assert first.kind == "certain"
    assert first.text.startswith("attention, on average over teacher forcing: dot is better than")
    assert (
        "no difference is certain" in next(each for each in others if each.kind != "certain").text
    )


def test_description_of_a_sweep_has_all_answers_and_the_most_disputed_sentence(
    findings: Findings,
) -> None:
    text = answer_in_markdown(findings)
    first, *others = answered(findings)
    assert text.startswith(f"**Which is better?** **Certain:** {first.text}\n\n")
    assert all(answer.text in text for answer in others)
    (disputed,) = disagreement(findings, 1).sentences
    qualities = [output.mean_quality for output in disputed.outputs]
    best = disputed.outputs[qualities.index(max(qualities))]
    worst = disputed.outputs[qualities.index(min(qualities))]
    assert f"**They differ most on** `{disputed.source}` (expected `{disputed.expected}`): " in text
    assert f"{best.system} writes `{best.text}`, {worst.system} `{worst.text}`." in text


def test_description_of_systems_that_write_the_same_disputes_no_sentence(tmp_path: Path) -> None:
    findings = found(of_systems(tmp_path, {"dot": 1.0, "general": 1.0}, (1, 2)))
    assert "They differ most" not in answer_in_markdown(findings)


def test_search_gets_no_command_for_more_seeds(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, {"dot": 0.5}, (1,), failed=False)
    record = folder.read()
    folder.write(dataclasses.replace(record, is_search=True))
    assert runs_of_sweep(folder, tmp_path).more_seeds is None


def test_marginal_means_are_means_over_the_other_factor(findings: Findings) -> None:
    attention, forcing = factors_of(findings).factors
    means = {name: float(sample.values.mean()) for name, sample in findings.samples.items()}
    dot, bahdanau = attention.levels
    assert (attention.name, attention.others) == ("attention", ["teacher forcing"])
    assert (dot.value, bahdanau.value) == ("dot", "bahdanau")
    assert dot.mean == pytest.approx(
        (means["dot · always teacher forcing"] + means["dot · never teacher forcing"]) / 2
    )
    assert bahdanau.mean == pytest.approx(
        (means["bahdanau · always teacher forcing"] + means["bahdanau · never teacher forcing"]) / 2
    )
    (pair,) = attention.pairs
    assert pair.difference == pytest.approx(dot.mean - bahdanau.mean)
    assert pair.low is not None
    assert pair.high is not None
    assert pair.low < pair.difference < pair.high
    assert (forcing.name, [level.value for level in forcing.levels]) == (
        "teacher forcing",
        ["always", "never"],
    )


def test_interaction_of_made_systems_is_named(findings: Findings) -> None:
    factors = factors_of(findings)
    assert factors.tested == 1
    (interaction,) = factors.interactions
    means = {name: float(sample.values.mean()) for name, sample in findings.samples.items()}
    gain = means["dot · always teacher forcing"] - means["bahdanau · always teacher forcing"]
    assert interaction.change == pytest.approx(gain)
    assert 0 < interaction.low < gain < interaction.high
    sentence = interaction_sentence(interaction, findings)
    assert sentence.startswith(
        "The gain of dot over bahdanau depends on teacher forcing: "
        f"+{gain:.2f} BLEU with always, +0.00 with never (change {gain:.2f}, "
    )
    assert Answer("certain", sentence) in answered(findings)


def test_no_interaction_is_named_where_gains_are_equal(tmp_path: Path) -> None:
    right = {
        ("dot", "always"): 0.9,
        ("dot", "never"): 0.9,
        ("bahdanau", "always"): 0.4,
        ("bahdanau", "never"): 0.4,
    }
    factors = factors_of(found(crossed(tmp_path, right)))
    assert factors.tested == 1
    assert factors.interactions == []


def test_factors_of_single_seeds_have_means_without_differences(tmp_path: Path) -> None:
    findings = found(crossed(tmp_path, seeds=(1,)))
    factors = factors_of(findings)
    assert [len(factor.levels) for factor in factors.factors] == [2, 2]
    assert all(pair.p is None for factor in factors.factors for pair in factor.pairs)
    assert (factors.interactions, factors.tested) == ([], 0)
    assert [answer.kind for answer in answered(findings)] == ["unknown"]


def test_factor_that_was_not_combined_with_all_others_has_no_means(tmp_path: Path) -> None:
    right = {("dot", "always"): 0.9, ("bahdanau", "never"): 0.5}
    factors = factors_of(found(crossed(tmp_path, right)))
    assert [factor.levels for factor in factors.factors] == [[], []]


def test_one_choice_is_no_factor_of_several(tmp_path: Path) -> None:
    findings = found(of_systems(tmp_path, {"dot": 0.9, "general": 0.5}, (1, 2)))
    factors = factors_of(findings)
    assert (factors.names, factors.factors, factors.tested) == (["attention"], [], 0)


def test_measures_that_are_equal_in_every_row_share_a_column(
    findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sentences still give the old values.
    monkeypatch.setattr("attnlab.report.findings._check", lambda *_: None)
    runs = []
    for system in findings.systems:
        for run in system.runs:
            equal = {"ter": run.evaluation.metrics["token_error_rate"], "aer": 0.25}
            metrics = run.evaluation.metrics | equal
            files = dataclasses.replace(run.evaluation, metrics=metrics)
            runs.append(dataclasses.replace(run, evaluation=files))
    wanted = dataclasses.replace(findings.wanted, samples=100)
    columns = other_columns(findings_of(runs, wanted, lambda *_: None))
    constant = [column.measures[0].name for column in columns if column.is_constant]
    assert constant == ["aer"]
    together = [{measure.name for measure in column.measures} for column in columns]
    assert {"ter", "token_error_rate"} in together


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d\d", text))


def test_numbers_of_the_page_are_those_of_the_json_files(
    with_seeds: ComparedRuns, findings: Findings, tmp_path: Path
) -> None:
    write_comparison(with_seeds, findings, tmp_path / "comparison", sentences=2)
    page = (tmp_path / "comparison" / "index.html").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "comparison" / "comparison.json").read_text(encoding="utf-8"))
    assert [answer["text"] in page for answer in record["answers"]] == [True] * 4

    written = {(pair["first"], pair["second"]): pair for pair in record["pairs"]}
    first = written["dot · always teacher forcing", "dot · never teacher forcing"]
    for key in ("difference", "low", "high"):
        assert f"{first[key]:.2f}" in numbers(record["answers"][0]["text"])
        assert f"+{first[key]:.2f}" in page

    of_json = []
    for run in with_seeds.runs:
        if run.system == "dot · always teacher forcing":
            of_json.append(run.evaluation.metrics["bleu"])
    assert f"{sum(of_json) / 3:.2f} ±" in page


def test_links_of_the_page_lead_to_reports_and_mlflow(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, {"dot": 0.9}, (1, 2), failed=False)
    report = folder.path / "0" / "report" / "index.html"
    report.parent.mkdir()
    report.write_text("the report", encoding="utf-8")
    compared = runs_of_sweep(folder, tmp_path)
    runs = [dataclasses.replace(run, run_id=f"id{run.seed}") for run in compared.runs]
    compared = dataclasses.replace(compared, runs=runs)
    address = "http://tracker:5000/#/experiments/1/runs/id2"
    links = MlflowLinks({"id2": address}, None)
    into = folder.path / "comparison"
    write_comparison(compared, found(compared), into, 2, links)
    page = (into / "index.html").read_text(encoding="utf-8")
    (relative,) = re.findall(r'href="([^"]*)" aria-label="report of dot · seed 1"', page)
    assert (into / relative).resolve() == report.resolve()
    assert f'href="{address}" aria-label="MLflow page of dot · seed 2"' in page
    assert "report of dot · seed 2" not in page


def test_nearest_of_many_better_systems_is_the_one_that_is_least_ahead(tmp_path: Path) -> None:
    ahead = {
        "general": 0.33,
        "concat": 0.46,
        "location": 0.59,
        "bahdanau": 0.72,
        "scaled_dot": 0.85,
    }
    compared = of_systems(tmp_path, {"dot": 0.05, **ahead}, (1, 2, 3))
    (first, *_) = answered(found(compared, baseline="dot"))
    assert "dot is worse than all 5 others; the nearest is general by" in first.text
