"""A whole training whose attention is switched on late."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from entry_points import Command, succeeded

SHORT = (
    "data=dates", "data.num_pairs=200", "training.max_steps=6", "training.validate_every=2",
    "training.batching.size=16", "training.log_every=2", "model.encoder.hidden_size=8",
    "model.encoder.embedding_size=8", "search=greedy", "tracking=none",
)  # fmt: skip
LATE = ("training/attention_schedule=late", "training.attention_schedule.from_step=4")


@pytest.mark.parametrize("meanwhile", ["uniform", "none"])
def test_late_attention_is_on_in_the_model_that_is_evaluated(
    meanwhile: str, command: Command, folder: Path
) -> None:
    how = f"training.attention_schedule.meanwhile={meanwhile}"
    succeeded(command("train.py", *SHORT, *LATE, how))
    (point,) = folder.glob("runs/points/*")
    with (point / "training" / "history.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    curve = [
        (int(r["step"]), float(r["value"])) for r in rows if r["name"] == "train/attention_is_on"
    ]
    assert curve == [(2, 0.0), (4, 0.0), (6, 1.0)]
    # The first validation with attention is that of the model.
    assert json.loads((point / "done.json").read_text())["step"] == 6
    (metrics,) = folder.glob("runs/plain/*/*/metrics.json")
    assert json.loads(metrics.read_text())["attention_entropy"] is not None


def test_schedule_of_the_attention_is_part_of_the_identity(command: Command, folder: Path) -> None:
    for overrides in ((), LATE):
        succeeded(command("train.py", *SHORT, "chain=false", *overrides))
    assert len(list(folder.glob("runs/points/*"))) == 2
