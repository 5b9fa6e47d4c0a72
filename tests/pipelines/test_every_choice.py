"""Every choice of every model group, every preset of a paper and of a lesson, at the entry point.

Each of them trains.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from entry_points import ROOT, Command, succeeded

MODEL = ROOT / "conf" / "model"
SMALL = (
    "data=copy", "data.num_pairs=60", "data.max_length=6", "training.max_steps=2",
    "training.validate_every=2", "training.batching.size=16",
    "training.validation_search.max_length=8", "search=greedy", "search.max_length=8",
    "tracking=none",
)  # fmt: skip
# The decoder's state is as wide as the encoder's output, so that scores without weights and the
# copy bridge fit.
SMALL_MODEL = (
    "model.encoder.embedding_size=8",
    "model.encoder.hidden_size=8",
    "model.decoder.hidden_size=16",
)
# Those of the settings above that a choice does not have: it is as wide as its embeddings, or made
# of parts that have them.
ABSENT = {
    "encoder=self_attention": ("model.encoder.hidden_size",),
    "encoder=averaging": ("model.encoder.hidden_size",),
    "encoder=bag_of_words": ("model.encoder.hidden_size",),
    "encoder=stacked": ("model.encoder.hidden_size", "model.encoder.embedding_size"),
    "encoder=with_features": ("model.encoder.hidden_size", "model.encoder.embedding_size"),
    "decoder=transformer": ("model.decoder.hidden_size",),
}
# Trainings that hold every choice of every group; what they do not name is as in seq2seq.yaml.
TOGETHER = [
    ("attention=bahdanau", "normaliser=gumbel", "history=forward", "initialisation=bahdanau"),
    ("attention=concat", "normaliser=hard", "encoder=lstm", "history=coverage", "readout=maxout"),
    (
        "attention=cosine",
        "normaliser=entmax",
        "history=location_sensitive",
        "encoder=rnn",
        "bridge=mean",
        "projection=linear",
        "decoder=conditional_gru",
    ),
    (
        "attention=dot",
        "normaliser=top_k",
        "bridge=copy",
        "decoder=step_then_attend",
        "readout=attentional",
        "scope=local_m",
    ),
    (
        "attention=general",
        "normaliser=sigmoid",
        "history=last_weights",
        "bridge=first_backward",
        "readout=plain",
        "scope=local_p",
        "initialisation=glorot",
    ),
    ("attention=location", "normaliser=sparsemax", "input_feeding=softmax_output"),
    ("attention=none", "decoder=no_attention", "readout=state"),
    (
        "attention=normed_bahdanau",
        "normaliser=adaptive_entmax",
        "bridge=zero",
        "heads=multi",
        "gate=per_head",
        "initialisation=uniform",
    ),
    (
        "attention=scaled_dot",
        "normaliser=softmax_with_sink",
        "history=forward_with_agent",
        "input_feeding=expected_embedding",
        "gate=elementwise",
    ),
    (
        "attention=scaled_luong",
        "normaliser=learned_temperature",
        "input_feeding=attentional_hidden",
        "readout=attentional",
    ),
    ("attention=uniform", "normaliser=softmax1"),
    ("attention=scaled_dot", "normaliser=reinforce", "history=location_sensitive"),
    ("attention=dot", "decoder=step_then_attend", "readout=attentional", "history=monotonic"),
    ("attention=general", "normaliser=around_best"),
    ("attention=bahdanau", "history=mocha"),
    ("attention=linear_attention", "history=coverage", "heads=multi"),
    ("attention=delta_rule", "normaliser=none", "decoder=step_then_attend"),
    ("attention=bahdanau", "output=pointer_generator"),
    ("decoder=step_then_attend", "output=pointer_network", "readout=plain"),
    ("encoder=self_attention", "attention=general", "bridge=linear"),
    ("encoder=self_attention", "attention=scaled_dot", "heads=multi", "decoder=transformer"),
    ("attention=bahdanau", "encoder=convolutional"),
    ("attention=bahdanau", "encoder=averaging", "bridge=zero"),
    ("attention=bahdanau", "encoder=bag_of_words", "bridge=mean"),
    ("attention=bahdanau", "encoder=stacked"),
    ("attention=bahdanau", "encoder=with_features"),
    ("attention=dot", "decoder=step_then_attend", "output=hard_attention"),
    ("attention=general", "decoder=step_then_attend", "output=hard_monotonic_attention"),
    ("attention=uniform", "decoder=step_then_attend", "output=first_order_hard_attention"),
]
PRESETS = (ROOT / "conf" / "experiment").glob
PAPERS = sorted(path.stem for path in PRESETS("*20[0-9][0-9]*.yaml"))
LESSONS = sorted(path.stem for path in PRESETS("lesson/*.yaml"))

GENERATED = (
    "articles",
    "flip_flop",
    "modular_arithmetic",
    "mqar",
    "parity",
    "reverse",
    "tracked_recall",
)

# What a choice of the model needs of the data.
NEEDS = dict.fromkeys(
    ("output=pointer_generator", "output=pointer_network"), ("data.tokenizer.joint=true",)
)
# What a corpus whose targets are too short for BLEU needs; a few flip-flops read few bits.
MONITOR = dict.fromkeys(("flip_flop", "tracked_recall"), ("training.monitor=exact_match",))


def trains(command: Command, folder: Path, *overrides: str) -> dict[str, float]:
    succeeded(command("train.py", *SMALL, *overrides))
    (metrics,) = (folder / "runs" / "plain").glob("*/*/metrics.json")
    return json.loads(metrics.read_text())


def test_trainings_hold_every_choice_of_the_model() -> None:
    defaults = [
        node
        for node in yaml.safe_load((MODEL / "seq2seq.yaml").read_text())["defaults"]
        if node != "_self_"
    ]
    held = {f"{group}={name}" for node in defaults for group, name in node.items()}.union(*TOGETHER)
    assert held == {f"{path.parent.name}={path.stem}" for path in MODEL.glob("*/*.yaml")}


@pytest.mark.slow
@pytest.mark.parametrize("choices", TOGETHER, ids=",".join)
def test_every_choice_of_the_model(
    choices: tuple[str, ...], command: Command, folder: Path
) -> None:
    absent = {setting for choice in choices for setting in ABSENT.get(choice, ())}
    sizes = [size for size in SMALL_MODEL if size.partition("=")[0] not in absent]
    needed = [word for choice in choices for word in NEEDS.get(choice, ())]
    named = (f"model/{choice}" for choice in choices)
    metrics = trains(command, folder, *sizes, *named, *needed)
    assert 0 < metrics["token_nll"] < 10
    attends = "attention=none" not in choices
    assert (
        (metrics["attention_pad_mass"] == 0) if attends else metrics["attention_pad_mass"] is None
    )


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_every_preset_of_a_paper(paper: str, command: Command, folder: Path) -> None:
    metrics = trains(command, folder, f"experiment={paper}")
    assert 0 < metrics["token_nll"] < 10


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_every_preset_of_a_lesson(lesson: str, command: Command, folder: Path) -> None:
    """On the data that come with it, cut short."""
    short = ("training.max_steps=2", "training.validate_every=2", "tracking=none")
    succeeded(command("train.py", f"experiment=lesson/{lesson}", *short))
    (metrics,) = (folder / "runs" / "plain").glob("*/*/metrics.json")
    measured = json.loads(metrics.read_text())
    nll = measured.get("token_nll", measured.get("nll"))
    assert 0 < nll < 10


@pytest.mark.slow
@pytest.mark.parametrize("data", GENERATED)
def test_every_generated_corpus(data: str, command: Command, folder: Path) -> None:
    others = [word for word in SMALL if not word.startswith("data")]
    monitor = MONITOR.get(data, ())
    succeeded(
        command("train.py", f"data={data}", "data.num_pairs=60", *others, *SMALL_MODEL, *monitor)
    )
    (metrics,) = (folder / "runs" / "plain").glob("*/*/metrics.json")
    measured = json.loads(metrics.read_text())
    assert 0 < measured["token_nll"] < 10
    assert 0 <= measured["aer"] <= 1


def test_tied_embeddings_over_a_joint_vocabulary(command: Command, folder: Path) -> None:
    joint = ("data.tokenizer.joint=true", "model.readout.size=8", *SMALL_MODEL)
    metrics = trains(command, folder, "model.tied_embeddings=all", *joint)
    assert metrics["token_nll"] > 0
