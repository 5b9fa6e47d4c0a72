"""The report page: complete, escaped, offline, the same bytes each time, and clear about what is missing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.errors import ExperimentError
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.evaluate import DecodedSentence, Evaluation
from attnlab.evaluation.text_metrics import TextMetrics, by_length, signatures
from attnlab.report.page import Stages, sample_predictions, sample_translations, write_translation_report

EVIL = "<script>alert('x')</script> & \"q\" 안녕 カナ שלום 😀"
CONFIG: dict[str, Any] = {
    "seed": 1,
    "data": {
        "_target_": "attnlab.data.hub.HubCorpus",
        "path": EVIL,
        "tokenizer": {"_target_": "attnlab.data.trainers.WordTokenizer", "size": None},
    },
    "model": {
        "encoder": {"_target_": "attnlab.model.encoder.Encoder", "cell": "gru"},
        "attention": {"_target_": "attnlab.model.attention.bahdanau.BahdanauScore", "size": 64},
        "decoder": {"_target_": "attnlab.model.decoder.decoders.AttendThenStep", "hidden_size": 128},
    },
    "padding": {"encoder": "pre", "decoder": "post", "attention_masked": True},
    "hardware": {"threads": 1, "precision": "32"},
}
CHOICES = {"padding": "pre_post, changed", "data": "multi30k", "hardware": "cpu"}


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    """The folders data, training and evaluation of a small experiment."""
    side = {
        "tokens": 60,
        "mean_length": 6.0,
        "p50_length": 6,
        "p95_length": 9,
        "max_length": 9,
        "unknown_tokens": 1,
        "unknown_rate": 0.0167,
        "length_histogram": [[3, 2], [6, 5], [9, 3]],
    }
    split = {"rows": 12, "pairs": 10, "dropped": {"empty <source>": 2}, "source": side, "target": side}
    stats = {
        "vocabulary": {"source": 1234, "target": 99},
        "splits": dict.fromkeys(("train", "validation", "test"), split),
    }
    info = {"source_language": "de", "target_language": "ko", "bleu_tokenize": "13a", "joint": False}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "stats.json").write_text(json.dumps(stats))
    (tmp_path / "data" / "data.json").write_text(json.dumps(info))

    lines = ["step,epoch,name,value"]
    for step in range(10, 101, 10):
        lines.append(f"{step},0,train/token_nll,{5 / step}")
    lines += ["50,0,validation/teacher_forced/token_nll,0.2", "50,0,validation/teacher_forced/perplexity,inf"]
    lines += ["50,0,validation/free_running/bleu,12.5"]
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "history.csv").write_text("\n".join(lines) + "\n")

    references = [f"문장 {number} 입니다" for number in range(9)] + [EVIL]
    hypotheses = [*references[:8], "", EVIL]
    sentences = [
        DecodedSentence(f"Satz {number}\u2028", reference, hypothesis, -0.25, 3 + number)
        for number, (reference, hypothesis) in enumerate(zip(references, hypotheses, strict=True))
    ]
    text = TextMetrics("13a")
    text.update(hypotheses, references)
    metrics = {**text.compute(), "token_nll": 0.5, "perplexity": None, "sentences": 10, "aer": 0.125}
    buckets = by_length([s.source_length for s in sentences], hypotheses, references, "13a")
    maps = [AttentionMap(["Satz", EVIL, "<eos>"], ["문장", "<eos>"], np.full((2, 3), 1 / 3), EVIL)]
    notes = {**signatures("13a"), "search": "beam 5"}
    wrong = [{"token": "요", "links": 9, "wrong": 7}, {"token": "일", "links": 3, "wrong": 0}]
    found = Evaluation(metrics, notes, sentences, buckets, maps, [{"offset": 1, "tokens": 20}], wrong)
    found.write(tmp_path / "evaluation")
    return tmp_path


def folders(stages: Path) -> Stages:
    return Stages(stages / "data", stages / "training", stages / "evaluation")


def write(stages: Path, into: str = "report") -> str:
    write_translation_report(CONFIG, CHOICES, folders(stages), stages / into)
    return (stages / into / "index.html").read_text(encoding="utf-8")


class _Texts(HTMLParser):
    """Tags, and all text outside of the style element."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] != ["style"]:
            self.texts.append(data)


def test_translation_page_shows_all_content_escaped(stages: Path) -> None:
    parser = _Texts()
    parser.feed(write(stages))
    text = " ".join(parser.texts)
    assert "script" not in parser.tags
    assert text.count("<script>alert('x')</script>") >= 4  # config, samples, map
    for expected in (
        "BahdanauScore",
        "AttendThenStep",
        "attention_masked: true",
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
    ):
        assert expected in text, expected
    assert parser.tags.count("img") == 4


def test_page_shows_choices_and_hides_redundant_class_names(stages: Path) -> None:
    rows = dict(re.findall(r'<tr><th scope="row">([^<]*)</th><td>([^<]*)</td>', write(stages)))
    assert rows["padding"] == "pre_post, changed"
    assert rows["data"] == "multi30k"
    assert rows["hardware"] == "cpu"
    assert rows["encoder"] == ""
    assert rows["attention"] == "bahdanau"


def test_page_needs_no_network_and_has_the_same_bytes(stages: Path) -> None:
    page = write(stages)
    assert page == write(stages, "again")
    parser = _Texts()
    parser.feed(page)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in parser.addresses)
    assert all(url.startswith("data:font/woff") for url in re.findall(r"url\(([^)]*)\)", page))
    assert "@import" not in page
    assert '<meta charset="utf-8">' in page[:400]
    assert "attnlab hangul'; src" in page  # a machine without Korean fonts shows Hangul


def test_report_writing_interrupted_leaves_the_previous_report_or_none(
    stages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, data: bytes) -> int:
        path.open("wb").close()
        raise KeyboardInterrupt

    before = write(stages)
    monkeypatch.setattr(Path, "write_bytes", interrupted)
    for into in ("report", "another"):
        with pytest.raises(KeyboardInterrupt):
            write(stages, into)
    assert (stages / "report" / "index.html").read_text(encoding="utf-8") == before
    assert sorted(path.name for path in stages.iterdir()) == ["data", "evaluation", "report", "training"]


def test_page_names_a_missing_stage(stages: Path) -> None:
    (stages / "evaluation" / "metrics.json").unlink()
    with pytest.raises(ExperimentError, match=r"metrics\.json is missing; run the evaluate stage first"):
        write(stages)
    assert not (stages / "report").exists()


def test_page_without_attention_and_history_says_so(stages: Path) -> None:
    save_maps([], stages / "evaluation" / "attention.npz")
    (stages / "training" / "history.csv").write_text("step,epoch,name,value\n")
    page = write(stages)
    assert "There is no attention to show" in page
    assert "There is no history" in page


def test_sample_translations_are_best_worst_and_random() -> None:
    rows = [
        {"reference": "a long good reference", "hypothesis": "a long good reference"},
        {"reference": "good", "hypothesis": "good"},
        {"reference": "xyz", "hypothesis": ""},
        {"reference": "half of it", "hypothesis": "half"},
    ]
    samples = sample_translations(rows, count=2)
    assert [row["number"] for row in samples["best"]] == [1, 2]
    assert [row["number"] for row in samples["worst"]] == [3, 4]
    assert sample_translations(rows[:2])["worst"] == []
    assert samples["random"] == sample_translations(rows, count=2)["random"]
    assert sample_translations([]) == {"random": [], "best": [], "worst": []}


def test_sample_predictions_are_mistakes_unsure_and_random() -> None:
    rows = [{"probability": probability, "correct": correct} for probability, correct in
            [(0.6, True), (0.9, False), (0.99, True), (0.7, False)]]  # fmt: skip
    samples = sample_predictions(rows, count=2)
    assert [row["number"] for row in samples["surest mistakes"]] == [2, 4]
    assert [row["number"] for row in samples["least sure"]] == [1, 4]
    assert samples["random"] == sample_predictions(rows, count=2)["random"]
    assert sample_predictions(rows[2:3])["surest mistakes"] == []
