"""The report pages: complete, escaped, offline and reproducible to the byte.

They say clearly what is missing.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.config.names import readable_name
from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.evaluation_files import read_lines
from attnlab.evaluation.examples import write_worst
from attnlab.evaluation.formed_attention import formed_maps
from attnlab.experiment.changes import Change
from attnlab.report.asked import Asked, AskedSweep
from attnlab.report.page import write_report
from attnlab.tasks.classification.evaluation import Classification
from attnlab.tasks.classification.report.section import sample_predictions
from attnlab.tasks.saved import task_of_evaluation
from attnlab.tasks.translation.evaluation import Evaluation
from attnlab.tasks.translation.metrics import TextMetrics, by_length, signatures
from attnlab.tasks.translation.report.section import best_rows
from attnlab.tasks.translation.sentence_scores import sentence_scores, worst_rows
from made_sweep import SIDE, write_stages

EVIL = "<script>alert('x')</script> & \"q\" 안녕 カナ שלום 😀"
CONFIG: dict[str, Any] = {
    "seed": 1,
    "data": {
        "_target_": "attnlab.data.hub.HubCorpus",
        "path": EVIL,
        "tokenizer": {"_target_": "attnlab.data.trainers.WordTokenizer", "size": None},
    },
    "model": {
        "encoder": {"_target_": "my_package.Encoder", "cell": "gru"},
        "attention": {"_target_": "attnlab.model.attention.bahdanau.BahdanauScore", "size": 64},
        "decoder": {
            "_target_": "attnlab.model.decoders.attend_then_step.AttendThenStep",
            "hidden_size": 128,
        },
    },
    "padding": {"encoder": "pre", "decoder": "post", "attention_masked": True},
    "hardware": {"threads": 1, "precision": "32"},
}
ASKED = Asked(
    changes=[
        Change("data", "data=multi30k", "dates", is_typed=True),
        Change("data.path", f"data.path={EVIL}", "null"),
    ],
    choices={"padding": "pre_post, changed", "data": "multi30k", "hardware": "cpu"},
    command=f"python pipelines/train.py data=multi30k 'data.path={EVIL}'",
    revision="0123abcd",
    has_local_changes=True,
    started="2026-11-26 10:00 UTC",
    run_id="5e6f",
    run_page="http://127.0.0.1:5000/#/runs/5e6f",
)
OF_A_SWEEP = replace(
    ASKED,
    title="bahdanau · teacher forcing ratio 1 · seed 1 · multi30k",
    server="mlflow server --port 5000",
    sweep=AskedSweep(
        name="attention × teacher forcing ratio × seed",
        points=18,
        command="python pipelines/train.py -m model/attention=dot,bahdanau",
        run_page="http://127.0.0.1:5000/#/runs/77aa",
        compare_command="python pipelines/compare.py sweep=677e",
        comparison="",
    ),
)


@pytest.fixture
def translation(tmp_path: Path) -> Path:
    """The folders data, training and evaluation of a small experiment."""
    write_stages(
        tmp_path,
        {"source_language": "de", "target_language": "ko", "bleu_tokenize": "13a", "joint": False},
        {"source": 1234, "target": 99},
        {"rows": 12, "pairs": 10, "dropped": {"empty <source>": 2}, "source": SIDE, "target": SIDE},
        *(f"{step},0,train/token_nll,{5 / step}" for step in range(10, 101, 10)),
        "50,0,validation/teacher_forced/token_nll,0.2",
        "50,0,validation/teacher_forced/perplexity,inf",
        "50,0,validation/free_running/bleu,12.5",
    )
    references = [f"문장 {number} 입니다" for number in range(9)] + [EVIL]
    hypotheses = [*references[:8], "", EVIL]
    sentences = [
        {
            "source": f"Satz {number}\u2028",
            "reference": reference,
            "hypothesis": hypothesis,
            "score": -0.25,
            "source_length": 3 + number,
            "exact": hypothesis == reference,
        }
        for number, (reference, hypothesis) in enumerate(zip(references, hypotheses, strict=True))
    ]
    text = TextMetrics("13a")
    text.update(hypotheses, references)
    metrics = {
        **text.compute(),
        "token_nll": 0.5,
        "perplexity": None,
        "sentences": 10,
        "aer": 0.125,
    }
    buckets = by_length([s["source_length"] for s in sentences], hypotheses, references, "13a")
    maps = [AttentionMap(["Satz", EVIL, "<eos>"], ["문장", "<eos>"], np.full((2, 3), 1 / 3), EVIL)]
    notes = {**signatures("13a"), "search": "beam 5"}
    wrong = [{"token": "요", "links": 9, "wrong": 7}, {"token": "일", "links": 3, "wrong": 0}]
    offsets = [{"offset": 1, "tokens": 20}]
    found = Evaluation(
        metrics, notes, sentences, buckets, maps, offsets, wrong, typical=[3], worst=[8]
    )
    found.write(tmp_path / "evaluation")
    return tmp_path


@pytest.fixture
def classification(tmp_path: Path) -> Path:
    write_stages(
        tmp_path,
        {"format": 1, "labels": [EVIL, "love"]},
        {"text": 1234},
        {
            "rows": 12,
            "sentences": 10,
            "dropped": {"no_label": 2},
            "labels": {EVIL: 4, "love": 6},
            "text": SIDE,
        },
        "10,0,train/nll,0.7",
        "10,0,validation/nll,0.6",
        "10,0,validation/accuracy,0.5",
    )
    found = Classification(
        metrics={
            "accuracy": 0.8125,
            "f1": 0.75,
            "nll": None,
            "attention_entropy": 1.25,
            "sentences": 2,
        },
        signatures={"accuracy": "share of sentences", "f1": "mean over the classes"},
        labels=[EVIL, "love"],
        confusions=np.array([[3, 1], [0, 2]]),
        sentences=[
            {
                "text": text,
                "label": label,
                "prediction": "love",
                "probability": sure,
                "correct": label == "love",
            }
            for text, label, sure in (("문장 하나", EVIL, 0.625), (EVIL, "love", 0.875))
        ],
        maps=[AttentionMap(["문장", EVIL, "<eos>"], ["love"], [[0.5, 0.25, 0.25]], "love (0.88)")],
    )
    found.write(tmp_path / "evaluation")
    return tmp_path


def write(folder: Path, into: str = "report", asked: Asked = ASKED) -> str:
    evaluation = folder / "evaluation"
    section = task_of_evaluation(evaluation).report_section()
    places = (folder / "data", folder / "training", evaluation, folder / into)
    write_report(CONFIG, asked, section, {}, *places)
    return (folder / into / "index.html").read_text(encoding="utf-8")


def addresses(page: str) -> list[str]:
    return re.findall(r'<[^>]*(?:src|href)="([^"]*)"', page)


def words(page: str) -> str:
    shown = page.rpartition("</style>")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split())


PAGES = {
    "translation": (
        readable_name(CONFIG),
        "BahdanauScore",
        "padding.attention_masked true",
        "2 empty <source>",
        "1,234",
        "0.1250",
        "tok:13a|smooth:none",
        "mean over all real target tokens",
        "beam 5",
        "문장 3 입니다",
        "(empty)",
        "data.tokenizer.size",
        "of 2 that have links",
    ),
    "classification": (
        readable_name(CONFIG),
        "0.8125",
        "mean over the classes",
        "1,234 tokens",
        "2 no_label",
        "문장 하나",
        "probability 0.625",
        "probability 0.875 · correct",
        "darkest: 0.50",
        "model.attention.size 64",
    ),
}


@pytest.mark.parametrize(("task", "charts"), [("translation", 5), ("classification", 3)])
def test_report_page_shows_all_content_escaped(
    task: str, charts: int, request: pytest.FixtureRequest
) -> None:
    page = write(request.getfixturevalue(task))
    text = words(page)
    assert "<script" not in page
    assert text.count("<script>alert('x')</script>") >= 4  # config, samples, map
    for expected in PAGES[task]:
        assert expected in text, expected
    assert page.count('<figure class="chart">') == charts


@pytest.mark.parametrize("task", PAGES)
def test_report_page_needs_no_network_and_has_the_same_bytes(
    task: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(task)
    page = write(folder)
    assert page == write(folder, "again")
    names = set(re.findall(r'<[^>]* id="([^"]*)"', page))
    inside = {address[1:] for address in addresses(page) if address.startswith("#")}
    assert inside <= names
    assert {address for address in addresses(page) if not address.startswith("#")} == {
        ASKED.run_page
    }
    outside = [url for url in re.findall(r"url\(([^)]*)\)", page) if not url.startswith("#")]
    assert all(url.startswith("data:font/woff") for url in outside)
    assert "@import" not in page
    assert '<meta charset="utf-8">' in page[:400]
    assert "attnlab hangul'; src" in page  # a machine without Korean fonts shows Hangul


@pytest.mark.parametrize("task", PAGES)
def test_page_says_what_was_asked_before_what_came_out(
    task: str, request: pytest.FixtureRequest
) -> None:
    sections = re.findall(r'<section id="(\w+)"', write(request.getfixturevalue(task)))
    assert sections[:3] == ["asked", "quality", "learning"]
    assert sections[-1] == "data"


def test_page_of_a_run_in_a_sweep_has_its_name_and_leads_to_the_sweep(translation: Path) -> None:
    page = write(translation, asked=OF_A_SWEEP)
    assert f"<h1>{OF_A_SWEEP.title}</h1>" in page
    assert OF_A_SWEEP.sweep is not None
    assert OF_A_SWEEP.sweep.run_page in addresses(page)
    text = words(page)
    for expected in (
        "attention × teacher forcing ratio × seed , 18 points",
        OF_A_SWEEP.sweep.command,
        OF_A_SWEEP.sweep.compare_command,
        "work while its server runs: mlflow server --port 5000",
    ):
        assert expected in text, expected


def test_page_of_a_run_in_a_compared_sweep_leads_to_the_comparison(translation: Path) -> None:
    assert OF_A_SWEEP.sweep is not None
    compared = replace(OF_A_SWEEP.sweep, comparison="../../comparison/index.html")
    page = write(translation, asked=replace(OF_A_SWEEP, sweep=compared))
    assert "../../comparison/index.html" in addresses(page)
    assert compared.compare_command not in words(page)


def test_page_marks_what_was_typed(translation: Path) -> None:
    page = write(translation)
    rows = re.findall(
        r'<tr><th scope="row"><code>(.*?)</code></th><td>.*?</td><td>(.*?)</td>', page
    )
    assert [typed for _, typed in rows] == ["typed", ""]


def test_page_lists_what_differs_from_the_defaults_and_how_it_ran(translation: Path) -> None:
    page = write(translation)
    table = page[page.index('<section id="asked"') : page.index('<dl class="facts">')]
    changed = re.findall(r'<th scope="row"><code>([^<]*)</code></th>', table)
    assert [html.unescape(text) for text in changed] == [each.override for each in ASKED.changes]

    asked = words(page[: page.index("<details>")])
    for expected in (
        ASKED.command,
        "0123abcd , with changes that are not committed",
        "2026-11-26 10:00 UTC",
        "seed 1",
        "1 thread(s), precision 32",
        "run 5e6f",
    ):
        assert expected in asked, expected


def test_page_without_changes_and_without_a_run_says_so(translation: Path) -> None:
    text = words(write(translation, asked=Asked()))
    assert "Every choice and setting is the default." in text
    assert "MLflow no run" in text


def test_page_folds_all_choices_and_settings(translation: Path) -> None:
    page = write(translation)
    folded = page[page.index("<details>") : page.index('<section id="quality"')]
    rows = dict(re.findall(r'<th scope="row"><code>([^<]*)</code></th><td>(.*)</td>', folded))
    assert rows["padding"] == "pre_post, changed"
    assert rows["model.attention.size"] == "<code>64</code>"


@pytest.mark.parametrize("task", PAGES)
def test_numbers_of_the_page_are_those_of_the_metrics_file(
    task: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(task)
    page = write(folder)
    table = page[page.index('class="plain metrics"') :]
    found = {}
    for row in re.findall(r'<tr><th scope="row">(.*?)</tr>', table, re.DOTALL):
        label, *cells = re.split(r"<[^>]+>", row)
        numbers = [float(cell.replace(",", "")) for cell in cells if re.fullmatch(r"[\d,.]+", cell)]
        found[label] = numbers
    section = task_of_evaluation(folder / "evaluation").report_section()
    metrics = json.loads((folder / "evaluation" / "metrics.json").read_text(encoding="utf-8"))
    for name, value in metrics.items():
        measure = section.known.named(name)
        numbers = found[measure.heading]
        if value is None:
            assert numbers == []
        else:
            assert numbers == [pytest.approx(value, abs=10**-measure.digits)]


def test_report_writing_interrupted_leaves_the_previous_report_or_none(
    translation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, data: bytes) -> int:
        path.open("wb").close()
        raise KeyboardInterrupt

    before = write(translation)
    monkeypatch.setattr(Path, "write_bytes", interrupted)
    for into in ("report", "another"):
        with pytest.raises(KeyboardInterrupt):
            write(translation, into)
    assert (translation / "report" / "index.html").read_text(encoding="utf-8") == before
    assert sorted(path.name for path in translation.iterdir()) == [
        "data",
        "evaluation",
        "report",
        "training",
    ]


def test_report_writes_a_table_of_each_curve_and_a_summary(translation: Path) -> None:
    """DVC draws the tables of several experiments in one chart; an empty cell would be a 0."""
    (translation / "training" / "history.csv").write_text(
        "step,epoch,name,value\n"
        "10,0,train/token_nll,2.5\n"
        "20,1,train/token_nll,1.25\n"
        "20,1,validation/free_running/bleu,30.5\n"
    )
    write(translation)
    report = translation / "report"
    tables = {
        path.relative_to(report / "curves").as_posix(): path.read_text()
        for path in (report / "curves").rglob("*.csv")
    }
    assert tables == {
        "train/token_nll.csv": "step,token_nll\n10,2.5\n20,1.25\n",
        "validation/free_running/bleu.csv": "step,bleu\n20,30.5\n",
    }
    assert "curves.png" not in {path.name for path in report.rglob("*.png")}

    measured = json.loads((translation / "evaluation" / "metrics.json").read_text())
    summary = json.loads((report / "summary.json").read_text())
    assert summary == {name: measured[name] for name in summary}
    assert {"bleu", "exact_match"} <= set(summary)
    assert "token_nll" not in summary


def test_page_names_a_missing_stage(translation: Path) -> None:
    (translation / "evaluation" / "metrics.json").unlink()
    with pytest.raises(
        ExperimentError, match=r"metrics\.json cannot be read: No such file .*; run the evaluate"
    ):
        write(translation)
    assert not (translation / "report").exists()


def test_page_without_attention_and_history_says_so(translation: Path) -> None:
    save_maps([], translation / "evaluation" / "attention.npz")
    (translation / "training" / "history.csv").write_text("step,epoch,name,value\n")
    page = write(translation)
    assert "There is no attention to show" in page
    assert "There is no history" in page


def test_worst_rows_have_the_lowest_scores_and_differ_from_their_references() -> None:
    pairs = [
        ("right", "right"),
        ("abcd", "abcx"),
        ("xyz", "uvw"),
        ("longer one", "uvw"),
        ("b", "c"),
    ]
    rows = [{"reference": reference, "hypothesis": hypothesis} for reference, hypothesis in pairs]
    scores = sentence_scores(rows)
    assert worst_rows(rows, scores, range(5), count=9) == [3, 2, 4, 1]
    assert worst_rows(rows, scores, [0, 1, 4], count=1) == [4]


def test_best_rows_have_the_highest_scores() -> None:
    rows = [{"reference": text, "hypothesis": text} for text in ("short", "a longer one", "x")]
    assert best_rows(rows, [100.0, 100.0, 3.0]) == [1, 0, 2]


def numbers_in(page: str, section: str) -> list[int]:
    """The numbers of the sentences in a section, in their order."""
    part = page.split(f'<section id="{section}">')[1].split("</section>")[0].split("<details>")[0]
    return [int(number) for number in re.findall(r"sentence (\d+) ·", part)]


def test_page_shows_the_worst_sentences_and_typical_ones_with_their_maps(translation: Path) -> None:
    evaluation = translation / "evaluation"
    one = AttentionMap(["Satz", "<eos>"], ["문장", "<eos>"], np.eye(2), "not shown")
    save_maps([one, one], evaluation / "attention.npz")
    write_worst(evaluation, typical=[0, 7], worst=[8], worst_maps=[one])
    page = write(translation)
    assert numbers_in(page, "worst") == [9]
    assert numbers_in(page, "typical") == [1, 8]
    assert page.count('<figure class="heat-map"') == 3
    assert "not shown" not in page


def test_page_of_an_older_evaluation_shows_the_sentences_whose_maps_it_has(
    translation: Path,
) -> None:
    evaluation = translation / "evaluation"
    for name in ("examples.json", "attention_worst.npz"):
        (evaluation / name).unlink()
    rows = read_lines(evaluation / "hypotheses.jsonl")
    maps = [
        AttentionMap(["Satz"], ["문장"], np.eye(1), f"{row['source']} → {row['hypothesis']}")
        for row in (rows[2], rows[8])
    ]
    save_maps(maps, evaluation / "attention.npz")
    page = write(translation)
    assert numbers_in(page, "worst") == [9]
    assert numbers_in(page, "typical") == [3]
    assert page.count('<figure class="heat-map"') == 2


def test_page_of_an_older_classification_shows_its_maps(classification: Path) -> None:
    for name in ("examples.json", "attention_worst.npz"):
        (classification / "evaluation" / name).unlink()
    assert "darkest: 0.50" in words(write(classification))


def test_page_shows_attention_over_the_validations(translation: Path) -> None:
    for step in (5, 10, 1000):
        each = AttentionMap(["Satz"], ["문장"], np.eye(1), f"Satz → at {step}")
        save_maps([each], formed_maps(translation / "training", f"step_{step:06d}"))
    text = words(write(translation))
    shown = re.findall(r"step (\d+) Satz → at (\d+)", text)
    assert shown == [("5", "5"), ("10", "10"), ("1000", "1000")]


def test_page_shows_tokens_weights_links_and_measures_of_the_validations(
    translation: Path,
) -> None:
    each = AttentionMap(
        ["Satz", "<eos>"],
        ["문장", "<eos>"],
        np.array([[0.75, 0.25], [0.5, 0.5]]),
        "Satz → 문장",
        sure_links=np.array([[0, 0]]),
        wrong_targets=[1],
    )
    for step in (0, 50):
        save_maps([each], formed_maps(translation / "training", f"step_{step:06d}"))
    page = write(translation)
    shown = page[page.index('<section id="formed"') : page.index('<section id="data"')]
    assert shown.count('<figure class="heat-map"') == 2
    assert "known alignment of the reference token" in shown
    for _, figure in zip(range(2), shown.split("<figure")[1:], strict=True):
        labels = re.findall(r'<span(?: class="[^"]*")? title="([^"]*)"', figure)
        assert labels == ["Satz", "&lt;eos&gt;", "문장", "&lt;eos&gt;"]
        assert "\u2068문장\u2069 ← \u2068Satz\u2069: 0.7500" in figure
        assert figure.count('<svg class="heat-link sure"') == 1
        assert figure.count('<span class="wrong"') == 1
    text = words(shown)
    assert "step 0 · before the training Satz → 문장" in text
    assert "step 50 · BLEU 12.50 Satz → 문장" in text


def test_page_of_a_classification_colours_the_sentence_of_the_validations(
    classification: Path,
) -> None:
    each = AttentionMap(["문장", "<eos>"], ["love"], np.array([[0.75, 0.25]]), "love (0.88)")
    save_maps([each], formed_maps(classification / "training", "step_000010"))
    page = write(classification)
    shown = words(page[page.index('<section id="formed"') : page.index('<section id="data"')])
    assert "love (0.88) · darkest: 0.75" in shown
    assert "step 10 · accuracy 0.5000" in shown


def test_page_with_many_long_maps_of_validations_stays_small(translation: Path) -> None:
    before = len(write(translation).encode())
    tokens = [f"token{number}" for number in range(30)]
    each = AttentionMap(tokens, tokens, np.full((30, 30), 1 / 30), "long")
    for step in range(8):
        save_maps([each], formed_maps(translation / "training", f"step_{step:06d}"))
    added = len(write(translation).encode()) - before
    assert added / (8 * 30 * 30) < 140  # bytes a weight


def test_page_says_where_bleu_is_undefined(translation: Path) -> None:
    """A reference of three words has no 4-gram, so that even a perfect translation would have 0."""
    page = write(translation)
    by_length = words(page[page.index('<h3 id="length"') : page.index('<h3 id="alignments"')])
    assert "For sources of 3–11 tokens it is undefined" in by_length
    assert " 3 1 – 1.0000" in by_length
    assert " 12 1 100.00 1.0000" in by_length


def test_page_shows_the_first_and_the_last_of_many_validations(translation: Path) -> None:
    each = AttentionMap(["Satz"], ["문장"], np.eye(1), "Satz")
    for step in range(1, 40):
        save_maps([each], formed_maps(translation / "training", f"step_{step:06d}"))
    steps = [int(step) for step in re.findall(r"step (\d+) Satz", words(write(translation)))]
    assert (steps[0], steps[-1], len(steps)) == (1, 39, 8)


def test_page_without_kept_attention_of_validations_says_so(translation: Path) -> None:
    assert "No attention of the validations was kept" in words(write(translation))


def test_sample_predictions_are_mistakes_unsure_and_random() -> None:
    given = [(0.6, True), (0.9, False), (0.99, True), (0.7, False)]
    rows = [{"probability": probability, "correct": correct} for probability, correct in given]
    samples = sample_predictions(rows, count=2)
    assert [row["number"] for row in samples["surest mistakes"]] == [2, 4]
    assert [row["number"] for row in samples["least sure"]] == [1, 4]
    assert samples["random"] == sample_predictions(rows, count=2)["random"]
    assert sample_predictions(rows[2:3])["surest mistakes"] == []
