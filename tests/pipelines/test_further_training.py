"""Training from the weights of a model, on a few rows of a corpus, and with the debug presets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from entry_points import TINY, Command, succeeded
from safetensors.torch import load_file
from test_refusals import refused

from attnlab.errors import ExperimentError
from attnlab.tasks.translation.module import Seq2SeqModule

SMALL = ("data=copy", "data.num_pairs=300", "search=greedy", "training.max_steps=2")
ALONE = (*TINY, "tracking=none", "chain=false")


@pytest.fixture
def model(command: Command, folder: Path) -> str:
    succeeded(command("train.py", *ALONE, "paths.model=first"))
    return str(folder / "first")


def test_training_starts_with_the_weights_of_another_model_on_other_data(
    model: str, command: Command, folder: Path
) -> None:
    other = ("data.seed=7", "data/tokenizer=of_model", f"data.tokenizer.folder={model}")
    start = (
        *ALONE,
        *other,
        f"training.initial_weights={model}",
        "training.optimizer.lr=1e-30",
    )
    succeeded(
        command(
            "train.py",
            *start,
            "training.max_steps=1",
            "training.validate_every=1",
            "paths.model=second",
        )
    )
    before, after = (
        load_file(folder / name / "weights.safetensors") for name in ("first", "second")
    )
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, rtol=0, atol=1e-6)


def test_weights_that_do_not_fit_are_refused(model: str, command: Command) -> None:
    start = (*ALONE, f"training.initial_weights={model}")
    refused(
        command("train.py", *start, "data.seed=7", "data.num_symbols=9"),
        "was not prepared with the source_tokeniz",
    )
    wider = command("train.py", *start, "model.readout.size=24")
    refused(wider, "do not fit the model: ", "size mismatch for ")
    refused(
        command("train.py", *ALONE, "training.initial_weights=nowhere"),
        "nowhere must be a model folder",
    )
    missing = ("data/tokenizer=of_model", "data.tokenizer.folder=nowhere")
    refused(
        command("train.py", *ALONE, *missing),
        "data.tokenizer.folder: there is no nowhere/source_tokenizer.json",
    )


def test_finished_training_goes_on_as_a_new_experiment_with_the_same_bits(
    command: Command, folder: Path
) -> None:
    alone = (
        *ALONE,
        "training/schedule=constant",
        "training.validate_every=2",
        "training.log_every=1",
    )
    succeeded(command("train.py", *alone, "training.max_steps=4", "paths.runs=first"))
    (parent,) = (path.parent for path in folder.glob("first/points/*/done.json"))
    further = (*alone, "training.max_steps=8", f"training.continue_from={parent.name}")
    ended = succeeded(command("train.py", *further, "paths.runs=first"))
    assert "goes on from its checkpoint at step 4" in ended.err
    succeeded(command("train.py", *alone, "training.max_steps=8", "paths.runs=second"))
    (continued,) = (
        path.parent for path in folder.glob("first/points/*/done.json") if path.parent != parent
    )
    (whole,) = (path.parent for path in folder.glob("second/points/*/done.json"))
    weights = [
        (place / "model" / "weights.safetensors").read_bytes() for place in (continued, whole)
    ]
    assert weights[0] == weights[1]
    # An end of the training is an end of the epoch, whose mean is logged then.
    of_steps = [
        [
            line
            for line in (place / "training" / "history.csv").read_text().splitlines()
            if "epoch_token" not in line
        ]
        for place in (continued, whole)
    ]
    assert of_steps[0] == of_steps[1]


def test_training_that_cannot_go_on_is_refused(command: Command, folder: Path) -> None:
    succeeded(command("train.py", *ALONE))
    (parent,) = (path.parent for path in folder.glob("runs/points/*/done.json"))
    further = (*ALONE, f"training.continue_from={parent.name}")
    other = command("train.py", *further, "training.max_steps=8", "model.readout.size=24")
    refused(other, f"training.continue_from: the experiment {parent.name} differs in model")
    size = command("train.py", *further, "training.max_steps=8", "training.batching.size=7")
    refused(size, "training.batching.size must be ", "got 7")
    missing = command("train.py", *ALONE, "training.continue_from=0123456789abcdef")
    refused(missing, "must be the identity of a finished experiment")
    assert [path.name for path in folder.glob("runs/points/*")] == [parent.name]
    ended = command("train.py", *further, "training.log_every=1")
    refused(ended, f"the experiment {parent.name} ended at step 4, and this training at step 4")


def test_limit_takes_the_first_rows_of_each_split(command: Command, folder: Path) -> None:
    succeeded(
        command("prepare.py", "data=copy", "data.num_pairs=200", "data.limit=30", "paths.data=few")
    )
    rows = json.loads((folder / "few" / "stats.json").read_text())["splits"]
    assert {split: found["pairs"] for split, found in rows.items()} == {
        "train": 30,
        "validation": 20,
        "test": 20,
    }


@pytest.mark.parametrize("preset", ["one_step", "profile"])
def test_preset_to_debug_with_is_quick_and_leaves_no_run(
    preset: str, command: Command, folder: Path
) -> None:
    ended = succeeded(command("train.py", f"debug={preset}", *SMALL))
    assert ("Profiler Report" in ended.err) == (preset == "profile")
    assert not (folder / "runs" / "mlflow.db").exists()


@pytest.mark.slow
def test_preset_overfit_learns_its_few_pairs(command: Command, folder: Path) -> None:
    small = (
        "model.encoder.hidden_size=24",
        "model.decoder.hidden_size=48",
        "training.max_steps=200",
    )
    succeeded(command("train.py", "debug=overfit", *small, "data=copy", "chain=false"))
    (history,) = folder.glob("runs/points/*/training/history.csv")
    lines = [line.split(",") for line in history.read_text().splitlines()]
    losses = [float(value) for _, _, name, value in lines[1:] if name == "train/token_nll"]
    assert losses[-1] < 0.1


def test_lightnings_way_to_load_a_checkpoint_says_what_to_use() -> None:
    with pytest.raises(ExperimentError, match=r"attnlab.load"):
        Seq2SeqModule.load_from_checkpoint("last.ckpt")
