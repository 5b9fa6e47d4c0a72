"""A trained model is tested on other lengths without training again (docs/generated_data.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from entry_points import Command, succeeded

SMALL = (
    "data=parity", "data.num_pairs=100", "data.min_length=7", "data.max_length=9",
    "model.encoder.hidden_size=8", "model.decoder.hidden_size=16", "training.max_steps=2",
    "training.validate_every=2", "training.batching.size=16",
)  # fmt: skip
OTHERS = (
    "data=parity", "data.num_pairs=20", "data.test_fraction=0.5", "data.min_length=10,20",
    "data.max_length=${data.min_length}", "data/tokenizer=of_model",
    "data.tokenizer.folder=build/model", "paths.data=build/length_${data.min_length}",
)  # fmt: skip


@pytest.mark.slow
def test_model_is_evaluated_on_lengths_that_its_training_did_not_have(
    command: Command, folder: Path
) -> None:
    succeeded(
        command("train.py", *SMALL, "paths.model=build/model", "search=greedy", "tracking=none")
    )
    succeeded(command("prepare.py", "-m", *OTHERS))
    data = "paths.data=build/length_10,build/length_20"
    of_model = ("paths.model=build/model", "search=greedy", "tracking=none")
    succeeded(command("evaluate.py", "-m", *of_model, data))

    found = sorted((folder / "runs" / "sweeps").glob("*/*/*/evaluation/metrics.json"))
    metrics = [json.loads(path.read_text()) for path in found]
    # Ten sources of each length, a result for each bit and <eos>
    assert [each["target_tokens"] for each in metrics] == [10 * 11, 10 * 21]
