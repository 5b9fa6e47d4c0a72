"""Losses on attention weights in a whole training."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from entry_points import Command, succeeded

SHORT = (
    "data=dates", "data.num_pairs=400", "training.max_steps=60", "training.validate_every=60",
    "training.batching.size=32", "training.log_every=10", "training.optimizer.lr=0.01",
    "model.encoder.hidden_size=16", "model.encoder.embedding_size=16", "search=greedy",
    "tracking=none",
)  # fmt: skip


def curve(folder: Path, name: str) -> list[float]:
    (history,) = folder.glob("runs/points/*/training/history.csv")
    with history.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] == name]
    return [float(row["value"]) for row in rows]


def metrics_of(folder: Path) -> dict[str, Any]:
    (metrics,) = folder.glob("runs/plain/*/*/metrics.json")
    return json.loads(metrics.read_text())


def test_guided_alignment_teaches_where_to_look(command: Command, folder: Path) -> None:
    """The possible links of dates, every token of a field to every other, are learned in 120 steps.

    Without them, more than half of the alignment is wrong then.
    """
    guided = ("training/attention_loss=guided_alignment", "training.attention_loss.links=possible")
    steps = ("training.max_steps=120", "training.validate_every=120")
    succeeded(command("train.py", *SHORT, *steps, *guided))
    of_links = curve(folder, "train/guided_alignment_loss")
    assert of_links[-1] < 0.8 * of_links[0]
    of_both, of_tokens = curve(folder, "train/loss"), curve(folder, "train/token_nll")
    for both, tokens, links in zip(of_both, of_tokens, of_links, strict=True):
        assert both == pytest.approx(tokens + links, rel=1e-4)
    assert metrics_of(folder)["aer"] < 0.2


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (("training/attention_loss=entropy",), "attention_entropy_loss"),
        (
            ("training/attention_loss=impermissible_mass", "training.attention_loss.tokens=['2']"),
            "impermissible_mass_loss",
        ),
    ],
    ids=["entropy", "impermissible_mass"],
)
def test_loss_on_weights_falls(
    loss: tuple[str, ...], name: str, command: Command, folder: Path
) -> None:
    strong = ("training.attention_loss.weight=5.0",)
    succeeded(command("train.py", *SHORT, *loss, *strong, "chain=false"))
    values = curve(folder, f"train/{name}")
    assert values[-1] < values[0]


def test_guided_alignment_of_data_without_links_is_refused(command: Command, folder: Path) -> None:
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "a b\tc d\n" * 40)
    own = (
        "data=hub",
        "data.path=pairs.tsv",
        "tracking=none",
        "data.splits.validation=0.2",
        "data.splits.test=0.2",
    )
    refused = command("train.py", *own, "training/attention_loss=guided_alignment")
    assert refused.code == 1
    assert "learns from gold links, but this data has none; choose" in " ".join(refused.err.split())


def test_classifier_learns_with_a_loss_on_its_weights(command: Command, folder: Path) -> None:
    reviews = ("task=classification", "data=lesson_reviews", "training.max_steps=20")
    sharp = ("training/attention_loss=entropy", "training.attention_loss.weight=2.0")
    often = ("training.log_every=5", "training.validate_every=20", "tracking=none", "chain=false")
    succeeded(command("train.py", *reviews, *sharp, *often))
    values = curve(folder, "train/attention_entropy_loss")
    assert values[-1] < values[0]
