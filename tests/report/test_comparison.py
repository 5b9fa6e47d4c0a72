"""The comparison of a made-up sweep: who takes part, what is found, and the page that shows it."""

from __future__ import annotations

import csv
import dataclasses
import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import ExperimentError
from attnlab.report.answers import answers, rule
from attnlab.report.compared_runs import ComparedRuns, LeftOut
from attnlab.report.comparison import write_comparison
from attnlab.report.factors import factors_of
from attnlab.report.findings import Findings, Wanted, findings_of
from attnlab.report.grouping import short_names, system_names, varying
from attnlab.report.run_sources import runs_of_sweep
from attnlab.runs.sweep_record import SweepFolder, find_sweep
from attnlab.tasks.classification.report.section import ClassificationSection
from attnlab.tasks.saved import measure_named
from attnlab.tasks.translation.report.section import TranslationSection
from made_sweep import IDENTITY, SYSTEMS, write_sweep

WANTED = Wanted("bleu", None, 200, 0.95, 1)


def silent(what: str, done: int, total: int) -> None:
    assert done <= total


def found(compared: ComparedRuns, **changed: object) -> Findings:
    return findings_of(compared.runs, dataclasses.replace(WANTED, **changed), silent)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("sweep") / "runs"
    write_sweep(runs)
    return runs


@pytest.fixture(scope="module")
def compared(runs_folder: Path) -> ComparedRuns:
    return runs_of_sweep(find_sweep(runs_folder, "last"), runs_folder)


@pytest.fixture(scope="module")
def findings(compared: ComparedRuns) -> Findings:
    return found(compared)


def test_find_sweep_accepts_a_prefix_and_last(tmp_path: Path) -> None:
    with pytest.raises(
        ExperimentError, match=r"there is no sweep in .*/sweeps; python pipelines/train.py -m"
    ):
        find_sweep(tmp_path, "last")
    for identity, started in (("aa11", 5.0), ("aa22", 9.0), ("bb33", 7.0)):
        folder = SweepFolder(tmp_path / "sweeps" / identity)
        record = write_sweep(tmp_path / "model", {"dot": 1.0}, (1,), failed=False).read()
        folder.write(dataclasses.replace(record, identity=identity, started=started))
    assert find_sweep(tmp_path, "last").path.name == "aa22"
    assert find_sweep(tmp_path, "b").path.name == "bb33"
    with pytest.raises(ExperimentError, match=r"exactly one of aa11, aa22; got 'aa'"):
        find_sweep(tmp_path, "aa")
    with pytest.raises(ExperimentError, match=r"one of aa11, aa22, bb33; got 'c'"):
        find_sweep(tmp_path, "c")


def test_compared_run_holds_choices_costs_history_and_evaluation(compared: ComparedRuns) -> None:
    first = compared.runs[0]
    assert (first.name, first.system, first.seed) == ("bahdanau · seed 1", "bahdanau", "1")
    assert first.choices == {"attention": "bahdanau"}
    assert first.costs == {"cpu_seconds": 60.0, "peak_megabytes": 560.0}
    assert first.history["validation/free_running/bleu"] == [(10, 10.5), (20, 21.0), (30, 31.5)]
    assert len(first.evaluation.sentences) == 40
    assert [run.system for run in compared.runs[4:]] == ["no attention"] * 2
    assert compared.left_out == [LeftOut("general · seed 1", "failed: the <disk> is full")]
    assert not compared.runs[4].evaluation.maps


def test_comparison_leaves_out_unstarted_running_and_repeated_jobs(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, {"dot": 0.5}, (1, 2), failed=False)
    folder.write(dataclasses.replace(folder.read(), points=5))
    second = folder.jobs()[1]
    folder.write_job(dataclasses.replace(second, number=2, name="again"))
    shutil.copytree(folder.path / "1", folder.path / "2")
    folder.write_job(dataclasses.replace(second, number=3, name="late", status="running"))
    reasons = {point.name: point.reason for point in runs_of_sweep(folder, tmp_path).left_out}
    assert reasons == {
        "late": "still running, or stopped",
        "1 more of 5 points": "not started",
        "again": "the same choices and seed as dot · seed 2",
    }


def test_comparison_leaves_out_a_run_without_an_evaluation(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, {"dot": 0.5}, (1, 2), failed=False)
    (folder.path / "0" / "evaluation" / "metrics.json").unlink()
    (lost,) = runs_of_sweep(folder, tmp_path).left_out
    assert lost.name == "dot · seed 1"
    assert "has no evaluation" in lost.reason
    (folder.path / "1" / "evaluation" / "metrics.json").unlink()
    with pytest.raises(ExperimentError, match=r"no point of .* is finished and evaluated"):
        runs_of_sweep(folder, tmp_path)


def test_findings_give_different_systems_different_letters(findings: Findings) -> None:
    assert [system.name for system in findings.systems] == ["bahdanau", "dot", "no attention"]
    assert set(findings.letters["bleu"]["no attention"]).isdisjoint(
        findings.letters["bleu"]["bahdanau"]
    )
    estimate = findings.estimates["bleu"]["bahdanau"]
    values = findings.systems[0].measured("bleu")
    assert estimate.mean == pytest.approx(sum(values) / 2)
    assert estimate.over == "seeds and sentences"
    assert findings.estimates["token_nll"]["dot"].over == "seeds"
    assert set(findings.estimates["aer"]) == {"bahdanau", "dot"}
    assert not {"sentences", "target_tokens"} & set(findings.estimates)
    # Of a loss less is better, so the order of the letters is the other one.
    assert findings.letters["token_nll"]["bahdanau"].startswith("a")


def test_findings_pairs_cover_all_systems_or_the_baseline(
    findings: Findings, compared: ComparedRuns
) -> None:
    names = [(pair.first, pair.second) for pair in findings.pairs]
    assert names == [("bahdanau", "dot"), ("bahdanau", "no attention"), ("dot", "no attention")]
    far = findings.pairs[1]
    assert far.difference > 10
    assert far.p is not None
    assert far.p < 0.05
    against = found(compared, baseline="dot").pairs
    assert [(pair.first, pair.second) for pair in against] == [
        ("bahdanau", "dot"),
        ("no attention", "dot"),
    ]
    assert against[1].difference < 0
    with pytest.raises(
        ExperimentError,
        match=r"baseline must be null or one of bahdanau, dot, no attention; got 'x'",
    ):
        found(compared, baseline="x")


def test_findings_depend_on_the_seed_of_the_samples(
    findings: Findings, compared: ComparedRuns
) -> None:
    assert found(compared).estimates == findings.estimates
    assert found(compared, seed=2).estimates["bleu"] != findings.estimates["bleu"]


def test_findings_refuse_metrics_that_contradict_the_sentences(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, {"dot": 0.5}, (1,), failed=False)
    path = folder.path / "0" / "evaluation" / "metrics.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bleu": 99.0}))
    with pytest.raises(
        ExperimentError,
        match=r"dot · seed 1: metrics.json says bleu 99.0000, but its sentences give",
    ):
        found(runs_of_sweep(folder, tmp_path))


def test_comparison_measure_defaults_to_bleu_or_accuracy_and_refuses_unknown_ones() -> None:
    of_runs = [
        ("one", ["sentences", "chrf", "bleu", "exact_match", "aer"]),
        ("two", ["chrf", "bleu", "exact_match"]),
    ]
    assert TranslationSection().known.chosen(None, of_runs) == "bleu"
    of_classes = ClassificationSection().known
    assert of_classes.chosen(None, [("one", ["f1", "accuracy"])]) == "accuracy"
    assert TranslationSection().known.chosen("chrf", of_runs) == "chrf"
    ranking = "all runs have and that systems can be ranked by: bleu, chrf, exact_match; got"
    with_neither = [(name, [*names, "attention_entropy"]) for name, names in of_runs]
    for wanted in ("aer", "meteor", "attention_entropy"):
        with pytest.raises(ExperimentError, match=f"{ranking} '{wanted}'"):
            TranslationSection().known.chosen(wanted, with_neither)
    assert (
        TranslationSection().known.chosen(None, [("one", ["attention_entropy", "token_nll"])])
        == "token_nll"
    )
    with pytest.raises(ExperimentError, match="ranked by: none; got None"):
        TranslationSection().known.chosen(None, [("one", ["attention_entropy"])])
    assert measure_named("cpu_seconds").shown(90.0) == "1.50"
    assert measure_named("bleu").shown(1.0, signed=True) == "+1.00"


def test_short_names_and_system_names_are_unique() -> None:
    assert short_names(
        [
            "model/encoder",
            "training.teacher_forcing.ratio",
            "search/size",
            "search.size",
            "data.seed",
        ]
    ) == {
        "model/encoder": "encoder",
        "training.teacher_forcing.ratio": "teacher forcing ratio",
        "search/size": "search/size",
        "search.size": "search.size",
        "data.seed": "data seed",
    }
    rates = [{"training.optimizer.lr": rate} for rate in ("0.00012341", "0.00012342", "0.5", "0.5")]
    close, other, half, same = system_names(rates)
    assert close != other
    assert half == same == "0.5 optimizer lr"
    assert system_names([{}]) == ["as given"]


def write(compared: ComparedRuns, findings: Findings, into: Path) -> str:
    write_comparison(compared, findings, into, sentences=10)
    return (into / "index.html").read_text(encoding="utf-8")


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.split("</style>")[1])).split())


def test_comparison_page_shows_all_content_escaped(
    compared: ComparedRuns, findings: Findings, tmp_path: Path
) -> None:
    page = write(compared, findings, tmp_path / "new" / "comparison")
    assert page.count("<script") == 1
    text = words(page)
    for expected in (
        "attention × seed: 6 runs of 3 systems", IDENTITY,
        "model/attention=bahdanau,dot,none seed=1,2", "BLEU ↑", "CPU minutes ↓", "peak MB ↓",
        "Systems that share a letter cannot be told apart",
        "two-level bootstrap with 200 samples, Holm's correction over 3 pairs, 95 %",
        "drawn over seeds and sentences", "원문", "<b>고양이</b>",
        "general · seed 1 failed: the <disk> is full",
    ):  # fmt: skip
        assert expected in text, expected
    assert "<img" not in page
    assert "attnlab hangul'; src" in page


def test_comparison_page_begins_with_its_answer(
    compared: ComparedRuns, findings: Findings, tmp_path: Path
) -> None:
    text = words(write(compared, findings, tmp_path / "comparison"))
    (answer, *_) = answers(findings, factors_of(findings))
    assert (
        text.index(answer.text)
        < text.index(rule(findings, factors_of(findings)))
        < text.index("BLEU ↑")
    )


def test_comparison_page_needs_no_network_and_has_the_same_bytes(
    compared: ComparedRuns, findings: Findings, tmp_path: Path
) -> None:
    page = write(compared, findings, tmp_path / "first")
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(address.startswith("#") for address in addresses)
    sections = set(re.findall(r'<section id="([\w-]+)"', page))
    assert {address[1:] for address in addresses if address.startswith("#")} == sections
    write(compared, found(compared), tmp_path / "second")
    write(compared, found(compared), tmp_path / "second")  # it takes its own place
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), path.name


def test_comparison_writes_csv_tables(
    compared: ComparedRuns, findings: Findings, tmp_path: Path
) -> None:
    into = tmp_path / "comparison"
    write(compared, findings, into)
    assert sorted(path.name for path in into.iterdir()) == [
        "comparison.csv", "comparison.json", "index.html", "learning.svg", "length.svg",
        "systems.csv", "systems.svg",
    ]  # fmt: skip
    with (into / "comparison.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["attention"], row["seed"]) for row in rows] == [
        (name, seed) for name in SYSTEMS for seed in "12"
    ]
    assert float(rows[0]["bleu"]) == compared.runs[0].measured["bleu"]
    assert (rows[0]["cpu_seconds"], rows[0]["peak_megabytes"], rows[4]["aer"]) == (
        "60.0",
        "560.0",
        "",
    )
    with (into / "systems.csv").open(encoding="utf-8", newline="") as file:
        systems = {(row["system"], row["metric"]): row for row in csv.DictReader(file)}
    row = systems["no attention", "bleu"]
    assert float(row["low"]) <= float(row["mean"]) <= float(row["high"])
    assert (row["n"], row["letters"]) == ("2", findings.letters["bleu"]["no attention"])


ONE_SEED = "Every system has one seed: how much another would change is unknown"
SMALL = {
    "classification": (
        {"measure": "accuracy", "translates": False},
        ("accuracy ↑", "F1 ↑", "over seeds and sentences", "darkest: 0.33", "<일상>", "문장 0"),
        ("BLEU",),
    ),
    "one seed each": (
        {"measure": "bleu", "seeds": (3,)},
        (ONE_SEED, "The interval is that of the mean, drawn over sentences."),
        ("±", "group", "share a letter", " p "),
    ),
    "one system": (
        {"measure": "token_nll", "seeds": (3,), "systems": {"dot": 0.5}},
        (
            "There is one system, and nothing to compare it with.",
            "There is no interval: one seed, and a measure",
        ),
        ("Pairs", "±"),
    ),
}


@pytest.mark.parametrize(("sweep", "present", "absent"), SMALL.values(), ids=SMALL)
def test_comparison_page_fits_what_was_compared(
    sweep: dict[str, Any], present: tuple[str, ...], absent: tuple[str, ...], tmp_path: Path
) -> None:
    measure = sweep["measure"]
    folder = write_sweep(
        tmp_path, failed=False, **{key: value for key, value in sweep.items() if key != "measure"}
    )
    compared = runs_of_sweep(folder, tmp_path)
    text = words(write(compared, found(compared, measure=measure), tmp_path / "comparison"))
    for expected in present:
        assert expected in text, expected
    for unexpected in absent:
        assert unexpected not in text.partition("By length of the source")[0], unexpected


def test_findings_refuse_runs_of_two_tasks(compared: ComparedRuns, tmp_path: Path) -> None:
    other = runs_of_sweep(
        write_sweep(tmp_path, {"dot": 0.5}, (1,), translates=False, failed=False), tmp_path
    )
    assert other.title == "attention × seed: 1 run of 1 system"
    with pytest.raises(
        ExperimentError, match="runs of classification and translation cannot be compared"
    ):
        findings_of([*compared.runs, *other.runs], WANTED, silent)


def test_comparison_page_says_that_there_are_several_test_sets(
    compared: ComparedRuns, tmp_path: Path
) -> None:
    """As in a sweep over data: sentences are then drawn apart."""
    runs = list(compared.runs)
    for number in (2, 3):
        files = runs[number].evaluation
        sentences = [{**row, "source": f"other {row['source']}"} for row in files.sentences]
        runs[number] = dataclasses.replace(
            runs[number], evaluation=dataclasses.replace(files, sentences=sentences)
        )
    mixed = dataclasses.replace(compared, runs=runs)
    assert "There are 2 test sets" in words(write(mixed, found(mixed), tmp_path / "comparison"))


def test_comparison_page_begins_certain_answers_with_the_word(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, {"bahdanau": 0.95, "none": 0.1}, (1, 2, 3), failed=False)
    compared = runs_of_sweep(sweep, tmp_path)
    text = words(write(compared, found(compared), tmp_path / "comparison"))
    assert "Certain: bahdanau is better than no attention by" in text


def test_comparison_page_leaves_bleu_out_where_it_is_undefined(
    compared: ComparedRuns, tmp_path: Path
) -> None:
    runs = []
    for run in compared.runs:
        first, *others = run.evaluation.by_length
        rows = [{**first, "bleu": None}, *others]
        evaluation = dataclasses.replace(run.evaluation, by_length=rows)
        runs.append(dataclasses.replace(run, evaluation=evaluation))
    short = dataclasses.replace(compared, runs=runs)
    ends = f"{first['from']}–{first['to']}" if first["from"] < first["to"] else first["to"]
    page = write(short, found(short), tmp_path / "comparison")
    assert f"For sources of {ends} tokens it is undefined and left out" in words(page)

    def marks(shown: str) -> int:
        chart = shown.partition('aria-label="BLEU ↑ (test)')[2].partition("</svg>")[0]
        return chart.count("whole")

    complete = write(compared, found(compared), tmp_path / "complete")
    assert marks(page) == marks(complete) - len(SYSTEMS)


NO_ATTENTION = {"attention": "none", "decoder": "no_attention"}
BAHDANAU = {"attention": "dot", "decoder": "attend_then_step"}
LUONG = {"attention": "dot", "decoder": "step_then_attend"}
BY_CLASS = [
    {"attention": "dot", "seed": "1", "model.attention._target_": "D", "paths.data": "a"},
    {"attention": "dot", "seed": "2", "model.attention._target_": "D", "paths.data": "b"},
    {"attention": "concat", "seed": "1", "model.attention._target_": "C", "paths.data": "a"},
]
BY_RATE = [
    {"attention": "dot", "seed": seed, "training.rate": rate}
    for seed in "12"
    for rate in ("0.1", "1")
]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ([NO_ATTENTION, BAHDANAU], ["attention"]),  # no attention and its decoder are one choice
        ([NO_ATTENTION, BAHDANAU, LUONG], ["attention", "decoder"]),
        ([BAHDANAU, LUONG], ["decoder"]),
        (BY_CLASS, ["attention"]),
        (BY_RATE, ["training.rate"]),  # dotted params only where short ones are equal
        (BY_RATE[:1], []),
    ],
)
def test_varying_finds_the_fewest_params_that_distinguish_systems(
    params: list[dict[str, str]], expected: list[str]
) -> None:
    assert varying(params) == expected
