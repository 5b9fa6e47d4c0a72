"""The table of metrics that a run prints: the order of the report, a column for each scale."""

from __future__ import annotations

import re

import pytest

from attnlab.experiment.composition import compose
from attnlab.experiment.evaluation import print_metrics


def printed_table(
    capsys: pytest.CaptureFixture[str], metrics: dict[str, float | None], *overrides: str
) -> list[list[str]]:
    print_metrics(metrics, compose(list(overrides)))
    lines = [line for line in capsys.readouterr().out.splitlines() if line[:1] in "┃│"]
    return [[cell.strip() for cell in re.split("[┃│]", line)[1:-1]] for line in lines]


def test_table_of_a_translation_has_the_order_of_the_report_and_a_column_for_each_scale(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = {
        "aer": 0.25,
        "attention_entropy": 1.5,
        "bleu": 93.5,
        "exact_match": 0.75,
        "perplexity": 1.25,
        "sentences": 60,
        "token_nll": 0.5,
    }
    assert printed_table(capsys, metrics) == [
        ["test split", "0–100", "0–1", "nats", "other"],
        ["bleu ↑", "93.5000", "", "", ""],
        ["exact_match ↑", "", "0.7500", "", ""],
        ["token_nll ↓", "", "", "0.5000", ""],
        ["perplexity ↓", "", "", "", "1.2500"],
        ["aer ↓", "", "0.2500", "", ""],
        ["attention_entropy", "", "", "1.5000", ""],
        ["sentences", "", "", "", "60"],
    ]


def test_table_of_a_classification_begins_with_its_accuracy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = {"attention_entropy": 0.5, "f1": 0.5, "accuracy": 0.75, "nll": None}
    rows = printed_table(capsys, metrics, "task=classification", "data=rt_polarity")
    assert [row[0] for row in rows[1:]] == ["accuracy ↑", "f1 ↑", "nll ↓", "attention_entropy"]
    assert rows[3] == ["nll ↓", "", "–"]


def test_table_has_the_metrics_that_the_config_adds(capsys: pytest.CaptureFixture[str]) -> None:
    rows = printed_table(capsys, {"length_ratio": 0.5, "bleu": 10.0}, "metrics=length_ratio")
    assert [row[0] for row in rows[1:]] == ["bleu ↑", "length_ratio"]
