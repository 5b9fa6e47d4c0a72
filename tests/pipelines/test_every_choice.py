"""Every choice of every model group, and every preset named after a paper, trains through the real entry point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from entry_points import ROOT, Command, succeeded
from test_refusals import refused

MODEL = ROOT / "conf" / "model"
SMALL = (
    "data=copy", "data.num_pairs=60", "data.max_length=6", "training.max_steps=2", "training.validate_every=2",
    "training.batching.size=16", "training.validation_search.max_length=8", "search=greedy", "search.max_length=8",
    "tracking=none",
)  # fmt: skip
# The decoder's state is as wide as the encoder's output, so that scores without weights and the copy bridge fit.
SMALL_MODEL = ("model.encoder.embedding_size=8", "model.encoder.hidden_size=8", "model.decoder.hidden_size=16")
# What a choice needs beside itself.
WITH = {
    "decoder/no_attention": ("model/attention=none",),
    "input_feeding/attentional_hidden": ("model/readout=attentional",),
    "readout/state": ("model.decoder.context=cell",),
}
CHOICES = sorted(str(path.relative_to(MODEL).with_suffix("")) for path in MODEL.glob("*/*.yaml"))
PRESETS = (ROOT / "conf" / "experiment").glob
PAPERS = sorted(path.stem for path in (*PRESETS("*20[0-9][0-9]*.yaml"), *PRESETS("lesson_bahdanau.yaml")))


def trains(command: Command, folder: Path, *overrides: str) -> dict[str, float]:
    succeeded(command("train.py", *SMALL, *overrides))
    (metrics,) = (folder / "runs" / "plain").glob("*/*/metrics.json")
    return json.loads(metrics.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_of_the_model(choice: str, command: Command, folder: Path) -> None:
    group, _, name = choice.rpartition("/")
    metrics = trains(command, folder, *SMALL_MODEL, f"model/{group}={name}", *WITH.get(choice, ()))
    assert 0 < metrics["token_nll"] < 10
    attends = choice not in ("attention/none", "decoder/no_attention")
    assert (metrics["attention_pad_mass"] == 0) if attends else metrics["attention_pad_mass"] is None


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_every_preset_of_a_paper(paper: str, command: Command, folder: Path) -> None:
    metrics = trains(command, folder, f"experiment={paper}")
    assert 0 < metrics["token_nll"] < 10


ILLEGAL = (
    (
        ("model/input_feeding=attentional_hidden",),
        "model.input_feeding: feeding the attentional hidden state needs a readout that makes one",
    ),
    (("model.decoder.context=cell", "model/readout=attentional"), "model.readout: the attentional hidden state is"),
    (("model/readout=state",), "model.readout: the state readout reads no context"),
    (("model/attention=location", "model/coverage=see2017"), "model.decoder: coverage is added to the keys"),
    (("model/attention=location", "model/heads=multi"), "model.heads: the location score has no keys"),
    (("model/attention=none", "model/coverage=see2017"), "model.coverage is chosen for an attention"),
    (("model/attention=none", "model/scope=local_p"), "model.scope is chosen for an attention"),
    (("model/bridge=first_backward", "model.encoder.bidirectional=false"), "model.bridge: the first_backward"),
    (("model.tied_embeddings=target",), "model.tied_embeddings is target, which needs a readout as wide as"),
    (
        ("model.tied_embeddings=all", "model.readout.size=64"),
        "model.tied_embeddings is all, which needs one joint vocabulary, but data.tokenizer.joint is false",
    ),
    (("model/scope=local_m", "model.scope.width=0"), "model.scope.width must be"),
    (("model/heads=multi", "model.heads.heads=0"), "model.heads.heads must be"),
)


@pytest.mark.parametrize(("overrides", "said"), ILLEGAL, ids=[" ".join(overrides) for overrides, _ in ILLEGAL])
def test_illegal_pair_of_choices_is_refused(overrides: tuple[str, ...], said: str, command: Command) -> None:
    refused(command("train.py", *SMALL, *overrides), said)


def test_tied_embeddings_over_a_joint_vocabulary(command: Command, folder: Path) -> None:
    joint = ("data.tokenizer.joint=true", "model.readout.size=8", *SMALL_MODEL)
    metrics = trains(command, folder, "model.tied_embeddings=all", *joint)
    assert metrics["token_nll"] > 0
