"""The page of a classifier: complete, escaped, offline, the same bytes each time."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.evaluation.classify import Classification, ClassifiedSentence
from attnlab.report.page import Stages, write_classification_report

EVIL = "<script>alert('x')</script> & \"q\" 안녕"
CONFIG: dict[str, Any] = {
    "seed": 7,
    "data": {"_target_": "attnlab.data.hub.LabelledCorpus", "path": EVIL},
    "model": {
        "attention": {"_target_": "attnlab.model.attention.bahdanau.BahdanauScore", "size": 64},
        "dense_size": 20,
    },
    "search": None,
}


@pytest.fixture
def stages(tmp_path: Path) -> Stages:
    side = {
        "tokens": 60, "mean_length": 6.0, "p50_length": 6, "p95_length": 9, "max_length": 9, "unknown_tokens": 1,
        "unknown_rate": 0.0167, "length_histogram": [[3, 2], [6, 5], [9, 3]],
    }  # fmt: skip
    split = {"rows": 12, "sentences": 10, "dropped": {"no_label": 2}, "labels": {EVIL: 4, "love": 6}, "text": side}
    stats = {"vocabulary": {"text": 1234}, "splits": dict.fromkeys(("train", "validation", "test"), split)}
    for name in ("data", "training", "evaluation"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "stats.json").write_text(json.dumps(stats))
    (tmp_path / "data" / "data.json").write_text(json.dumps({"format": 1, "labels": [EVIL, "love"]}))
    lines = ["step,epoch,name,value", "10,0,train/nll,0.7", "10,0,validation/nll,0.6", "10,0,validation/accuracy,0.5"]
    (tmp_path / "training" / "history.csv").write_text("\n".join(lines) + "\n")
    found = Classification(
        metrics={"accuracy": 0.8125, "f1": 0.75, "nll": None, "attention_entropy": 1.25, "sentences": 2},
        signatures={"accuracy": "share of sentences", "f1": "mean over the classes"},
        labels=[EVIL, "love"],
        confusions=np.array([[3, 1], [0, 2]]),
        sentences=[
            ClassifiedSentence("문장 하나", EVIL, "love", 0.625, 2),
            ClassifiedSentence(EVIL, "love", "love", 0.875, 3),
        ],
        maps=[AttentionMap(["문장", EVIL, "<eos>"], ["love"], [[0.5, 0.25, 0.25]], "love (0.88)")],
    )
    found.write(tmp_path / "evaluation")
    return Stages(tmp_path / "data", tmp_path / "training", tmp_path / "evaluation")


def write(stages: Stages, into: Path) -> str:
    write_classification_report(CONFIG, {}, stages, into)
    return (into / "index.html").read_text(encoding="utf-8")


def test_classification_page_shows_all_content_escaped(stages: Stages, tmp_path: Path) -> None:
    page = write(stages, tmp_path / "report")
    assert "<script" not in page
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.split("</style>")[1])).split())
    for expected in (
        f"{EVIL} / love · bahdanau", "0.8125", "mean over the classes", "1,234 tokens", "2 no_label", "문장 하나",
        "probability 0.625", "probability 0.875 · correct", "darkest: 0.50",
        "model.dense_size 20", "model.attention.size 64",
    ):  # fmt: skip
        assert expected in text, expected
    assert page.count("<img") == 3  # lengths, curves, confusions
    assert page.count('class="token"') == 3


def test_classification_page_needs_no_network_and_has_the_same_bytes(stages: Stages, tmp_path: Path) -> None:
    page = write(stages, tmp_path / "first")
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    links = {address for address in addresses if address.startswith("#")}
    assert links == {f"#{name}" for name in re.findall(r'<section id="(\w+)"', page)}
    assert write(stages, tmp_path / "second") == page
