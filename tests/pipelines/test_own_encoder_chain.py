"""An encoder of somebody's own, which is no recurrence, from the command line to the explorer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from entry_points import TINY, Command, succeeded
from test_classification import TASK, corpus

import attnlab
from attnlab.errors import ExperimentError
from attnlab.tasks.classification.analysis import classify
from attnlab.tasks.translation.analysis import parts_of, translate
from attnlab.tasks.translation.step_numbers import step_numbers


def own_encoder(folder: Path) -> tuple[str, ...]:
    """The words of a command that choose it, from a folder of configs."""
    node = {
        "_target_": "convolutional.GatedConvolutionsEncoder",
        "embedding_size": 8,
        "blocks": 2,
        "kernel": 3,
        "summary_size": 12,
        "dropout": 0.1,
    }
    path = folder / "conf" / "model" / "encoder" / "gated_convolutions.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(node))
    return "--config-dir", str(folder / "conf"), "model/encoder=gated_convolutions", "tracking=none"


def without(settings: tuple[str, ...], *starts: str) -> list[str]:
    return [setting for setting in settings if not setting.startswith(starts)]


def the_model(folder: Path) -> Path:
    (found,) = folder.glob("runs/points/*/model")
    return found


@pytest.fixture
def translator(command: Command, folder: Path) -> Any:
    tiny = without(TINY, "model.encoder.")
    succeeded(command("train.py", *own_encoder(folder), *tiny))
    with pytest.raises(ExperimentError, match=r"names classes of convolutional; .* allow="):
        attnlab.load(the_model(folder))
    return attnlab.load(the_model(folder), allow=["convolutional"])


def test_translator_over_an_own_encoder_trains_evaluates_and_is_explored(
    translator: Any, folder: Path
) -> None:
    (metrics,) = (folder / "runs" / "plain").glob("*/*/metrics.json")
    assert json.loads(metrics.read_text())["token_nll"] > 0
    config = json.loads((the_model(folder) / "config.json").read_text())
    decoder = config["model"]["decoder"]
    # What the encoder has under the same name, and the decoder's own value of everything else.
    assert (decoder["embedding_size"], decoder["dropout"]) == (8, 0.1)
    assert (decoder["cell"], decoder["layers"], decoder["layer_dropout"]) == ("gru", 1, 0.0)

    text = "a b c"
    assert parts_of(translator)["score"] == "Bahdanau"
    answer = translate(translator, text)
    assert len(answer["attention"]) == len(answer["target"])
    shown = step_numbers(translator, text, answer["ids"])
    (keys,) = [symbol for symbol in shown["symbols"] if symbol["id"] == "h"]
    assert len(keys["values"]) == len(answer["source"])


def test_classifier_over_an_own_encoder_trains_evaluates_and_is_explored(
    command: Command, folder: Path
) -> None:
    data = (f"data.path={corpus(folder / 'corpus')}", "data.tokenizer.min_frequency=1")
    tiny = without(TASK, "model.encoder.")
    succeeded(command("train.py", *own_encoder(folder), *tiny, *data))
    classifier = attnlab.load(the_model(folder), allow=["convolutional"])
    assert classifier("w1 bad w2").label in classifier.labels
    found = classify(classifier, "w1 bad w2")
    assert len(found["attention"]) == len(found["source"])
