"""The classifier against its formula, its padding, its parts, and its model folder."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import paper_equations as paper
import pytest
import torch
from composed_variants import composed, usual_first
from legal_choices import BY_POSITION, SCORES
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS, PAD, Padding
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.model.classifier import Classifier
from attnlab.model.gates import ElementwiseGate
from attnlab.model.model_folder import (
    ModelFacts,
    load_classifier,
    load_model,
    save_model,
)
from attnlab.tasks.classification.task import Classification

SENTENCES = [[5, 4, 9, 7], [6], [10, 4, 8, 8, 5, 9, 4], [7, 7]]
VOCABULARY = 11


def config(
    *,
    attention: str = "bahdanau",
    scope: str = "global",
    normaliser: str = "softmax",
    projection: str = "none",
    heads: str = "one",
    gate: str = "none",
    query: str = "sentence",
    cell: str = "lstm",
    **encoder: Any,
) -> dict[str, Any]:
    """The node of a small classifier, made of the project's own YAML files."""
    parts = {
        "attention": attention,
        "scope": scope,
        "normaliser": normaliser,
        "projection": projection,
        "heads": heads,
        "gate": gate,
    }
    sizes = {"embedding_size": 6, "hidden_size": 4, "layers": 1} | dict.fromkeys(
        ("word_dropout", "dropout", "layer_dropout", "output_dropout"), 0.0
    )
    return {
        "_target_": "attnlab.model.classifier.Classifier",
        "encoder": composed({"encoder": cell})["encoder"] | sizes | encoder,
        **{group: composed({group: name})[group] for group, name in parts.items()},
        "query": query,
        "dense_size": 20,
        "dropout": 0.5,
    }


def build(num_classes: int = 2, padding: Padding = Padding(), **changed: Any) -> Classifier:  # noqa: B008 (frozen)
    torch.manual_seed(1)
    part = bind(config(**changed), Classifier, "model")
    model: Classifier = part(
        source_vocabulary_size=VOCABULARY, num_classes=num_classes, padding=padding
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2.0  # at birth small models hardly prefer anything
    return model.double().eval()


def padded(sentences: list[list[int]], side: str, more: int = 0) -> tuple[Tensor, Tensor]:
    """Sentences with their <eos>, padded to the longest and `more`."""
    width = max(map(len, sentences)) + 1 + more
    rows = [[*sentence, EOS] for sentence in sentences]
    pads = [[PAD] * (width - len(row)) for row in rows]
    ids = [
        [*pad, *row] if side == "pre" else [*row, *pad] for row, pad in zip(rows, pads, strict=True)
    ]
    source = torch.tensor(ids)
    return source, source != PAD


def by_formula(
    model: Classifier, sentence: list[int], heads: int | None = None, gate: str = "none"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities (C,) and attention weights (S,) of one sentence, from the papers' equations.

    The weights are the mean over the heads.
    """
    w = paper.weights_of(model)
    encoded = paper.encode(
        paper.part(w, "encoder."), "lstm", 1, True, "concatenate", False, [*sentence, EOS]
    )
    q = w.get("learned_query", encoded.final.hidden[-1])
    choice = paper.Attention("bahdanau", heads=heads, gate=gate)
    pasts = [{} for _ in range(heads or 1)]
    c, of_heads, _ = paper.attend(choice, paper.part(w, "attention."), q, encoded.outputs, 0, pasts)
    d = np.maximum(w["dense.weight"] @ c + w["dense.bias"], 0)
    z = w["output.weight"] @ d + w["output.bias"]
    if len(z) == 1:
        z = np.array([0.0, z[0]])  # its softmax is the sigmoid of z and its complement
    return paper.softmax(z), np.mean(of_heads, axis=0)


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("heads", [None, 4])
@pytest.mark.parametrize("gate", usual_first("gate"))
@pytest.mark.parametrize("query", ["sentence", "learned"])
def test_classifier_equals_its_formula(
    num_classes: int, heads: int | None, gate: str, query: str
) -> None:
    model = build(num_classes, heads="multi" if heads else "one", gate=gate, query=query)
    assert model.output.out_features == (1 if num_classes == 2 else num_classes)
    source, mask = padded(SENTENCES, "pre")
    found = model(source, mask)
    for i, sentence in enumerate(SENTENCES):
        probabilities, weights = by_formula(model, sentence, heads, gate)
        assert (
            np.abs(found.log_probabilities[i].exp().detach().numpy() - probabilities).max() < 1e-10
        )
        assert np.abs(found.attention_weights[i][mask[i]].detach().numpy() - weights).max() < 1e-10
    assert found.attention_weights[~mask].abs().sum() == 0


@pytest.mark.parametrize(
    ("num_classes", "gate"), [(2, "none"), (3, "none"), (2, "elementwise"), (3, "per_head")]
)
def test_classifier_gradient_matches_finite_differences(num_classes: int, gate: str) -> None:
    model = build(num_classes, gate=gate)
    source, mask = padded(SENTENCES[:2], "post")
    parameters = [p for p in model.parameters() if p is not model.encoder.embedding.weight]

    def loss(*_: Tensor) -> Tensor:
        return model(source, mask).log_probabilities[torch.arange(2), torch.tensor([1, 0])].sum()

    assert torch.autograd.gradcheck(loss, parameters, fast_mode=True)


@pytest.mark.parametrize(("attention", "scope"), itertools.product(SCORES, ["global", "local_p"]))
def test_classified_sentence_alone_equals_itself_in_any_batch(attention: str, scope: str) -> None:
    """Before or after it, few pads or many: nothing changes."""
    models = {
        side: build(3, Padding(encoder=side), attention=attention, scope=scope)
        for side in ("pre", "post")
    }
    alone = [
        models["pre"](*padded([sentence], "pre")).log_probabilities[0] for sentence in SENTENCES
    ]
    for side, more in itertools.product(models, (0, 3)):
        source, mask = padded(SENTENCES, side, more)
        found = models[side](source, mask)
        torch.testing.assert_close(found.log_probabilities, torch.stack(alone), rtol=0, atol=1e-12)
        assert found.attention_weights[~mask].abs().sum() == 0


@pytest.mark.parametrize("attention", SCORES)
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"normaliser": "sparsemax"},
        {"projection": "linear"},
        {"heads": "multi"},
        {"gate": "elementwise"},
        {"gate": "per_head"},
        {"cell": "gru", "layers": 2},
        {"bidirectional": False},
        {"merge": "sum"},
        {"reverse_source": True},
    ],
    ids=str,
)
def test_every_score_goes_with_every_other_choice(attention: str, changed: dict[str, Any]) -> None:
    if attention in BY_POSITION and {"projection", "heads"} & set(changed):
        with pytest.raises(
            (ExperimentError, ValueError), match=r"choose model/(projection=none|heads=one)"
        ):
            build(3, attention=attention, **changed)
        return
    model = build(3, attention=attention, **changed)
    found = model(*padded(SENTENCES, "pre"))
    torch.testing.assert_close(found.attention_weights.sum(1), torch.ones(4).double())
    torch.testing.assert_close(found.log_probabilities.exp().sum(1), torch.ones(4).double())
    found.log_probabilities[:, 0].sum().backward()
    without = [
        name
        for name, p in model.named_parameters()
        if p.grad is None or not p.grad.isfinite().all()
    ]
    assert without == []


@pytest.mark.parametrize(("gate", "heads"), [("elementwise", "one"), ("per_head", "multi")])
def test_gated_sentence_alone_equals_itself_in_any_batch(gate: str, heads: str) -> None:
    model = build(3, gate=gate, heads=heads)
    alone = [model(*padded([each], "pre")).log_probabilities[0] for each in SENTENCES]
    found = model(*padded(SENTENCES, "pre", 3)).log_probabilities
    torch.testing.assert_close(found, torch.stack(alone), rtol=0, atol=1e-12)


@pytest.mark.parametrize("attention", [score for score in SCORES if score not in BY_POSITION])
def test_learned_query_is_asked_of_every_sentence_and_learns(attention: str) -> None:
    model = build(attention=attention, query="learned")
    source, mask = padded(SENTENCES, "post")
    model(source, mask).log_probabilities[:, 0].sum().backward()
    learned = model.learned_query
    assert learned is not None
    assert learned.grad is not None
    assert learned.grad.abs().sum() > 0
    memory = model.read(source, mask)
    assert torch.equal(model.ask(memory), learned.expand(len(SENTENCES), 1, -1))


def test_additive_score_of_a_learned_query_has_none() -> None:
    """v · tanh(U h + b), as in Jain and Wallace 2019, where b is W q."""
    model = build(query="learned", bidirectional=False)
    source, mask = padded([SENTENCES[0]], "post")
    outputs = model.encoder(source, mask).outputs[0]  # (S, D)
    score: Any = model.attention.score
    bias = score.W.weight @ model.learned_query
    energies = torch.tanh(outputs @ score.U.weight.T + bias) @ score.v
    torch.testing.assert_close(model(source, mask).attention_weights[0], energies.softmax(0))


def test_open_gate_is_no_gate_and_a_closed_one_leaves_nothing_of_the_sentence() -> None:
    plain, gated = build(3), build(3, gate="elementwise")
    assert not gated.load_state_dict(plain.state_dict(), strict=False).unexpected_keys
    gate = gated.attention.gate
    assert isinstance(gate, ElementwiseGate)
    source, mask = padded(SENTENCES, "pre")
    with torch.no_grad():
        gate.W.weight.zero_()
        gate.W.bias.fill_(100.0)
        opened = gated(source, mask)
        gate.W.bias.fill_(-100.0)
        closed = gated(source, mask)
    torch.testing.assert_close(opened.log_probabilities, plain(source, mask).log_probabilities)
    torch.testing.assert_close(opened.attention_weights, closed.attention_weights)
    nothing = torch.zeros(4, gated.dense.in_features, dtype=torch.float64)
    torch.testing.assert_close(closed.log_probabilities, gated.decide(nothing))


def test_unmasked_attention_weighs_pads() -> None:
    source, mask = padded(SENTENCES, "pre")
    found = build(padding=Padding(attention_masked=False))(source, mask)
    assert found.attention_weights[~mask].sum() > 0.1


def test_classifier_dropout_acts_in_training_only() -> None:
    model = build().float()
    source, mask = padded(SENTENCES, "pre")
    first = model(source, mask).log_probabilities
    assert torch.equal(first, model(source, mask).log_probabilities)
    model.train()
    assert not torch.equal(first, model(source, mask).log_probabilities)


def test_probabilities_stay_finite_at_their_ends() -> None:
    """Where a sigmoid is 1 to the last bit, its complement's logarithm is still right."""
    model = build()
    with torch.no_grad():
        model.output.bias.fill_(800.0)
    log_probabilities = model(*padded(SENTENCES, "pre")).log_probabilities
    assert log_probabilities.isfinite().all()
    assert (log_probabilities[:, 0] < -700).all()


@pytest.mark.processor
def test_half_precision_keeps_whole_logarithms() -> None:
    model = build(3).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = model(*padded(SENTENCES, "pre"))
    assert found.log_probabilities.dtype is torch.float32
    torch.testing.assert_close(
        found.log_probabilities.exp().sum(1), torch.ones(4), rtol=0, atol=1e-6
    )


def test_classifier_with_a_window_over_the_target_is_refused() -> None:
    with pytest.raises(
        ExperimentError,
        match=r"model\.scope LocalM follows the target .* choose model/scope=global",
    ):
        build(scope="local_m")


def test_classifier_without_attention_is_refused() -> None:
    node = config() | {"attention": None}
    with pytest.raises(ExperimentError, match=r"model\.attention must be a Score"):
        bind(node, Classifier, "model")


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, Classifier]:
    model = build(3).float()
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    for name in Classification().shared_files:
        (prepared / name).write_text("{}")
    facts = ModelFacts("f" * 16, 7, {"source_vocabulary_size": VOCABULARY, "num_classes": 3})
    sections = {"model": config(), "padding": {"_target_": "attnlab.batch.Padding"}}
    save_model(
        tmp_path / "model",
        model.state_dict(),
        sections,
        facts,
        Classification().shared_paths(prepared),
    )
    return tmp_path / "model", model


def test_saved_classifier_loads_unchanged(folder: tuple[Path, Classifier]) -> None:
    path, model = folder
    assert {*Classification().shared_files, "model.json", "config.json", "weights.safetensors"} == {
        file.name for file in path.iterdir()
    }
    loaded = load_classifier(str(path))
    assert not loaded.training
    source, mask = padded(SENTENCES, "pre")
    assert torch.equal(
        loaded(source, mask).log_probabilities, model(source, mask).log_probabilities
    )


def test_folder_of_a_version_without_gates_loads(folder: tuple[Path, Classifier]) -> None:
    path, model = folder
    saved = json.loads((path / "config.json").read_text())
    assert saved["model"].pop("gate", "missing") is None
    (path / "config.json").write_text(json.dumps(saved))
    source, mask = padded(SENTENCES, "pre")
    loaded = load_classifier(str(path))
    assert torch.equal(
        loaded(source, mask).log_probabilities, model(source, mask).log_probabilities
    )


def test_folder_of_another_task_is_refused(folder: tuple[Path, Classifier]) -> None:
    path, _ = folder
    with pytest.raises(ExperimentError, match="is a Classifier, but a Seq2Seq is needed here"):
        load_model(path)


def test_folder_of_an_older_version_with_null_sizes_loads(folder: tuple[Path, Classifier]) -> None:
    path, _ = folder
    facts = json.loads((path / "model.json").read_text())
    (path / "model.json").write_text(json.dumps(facts | {"target_vocabulary_size": None}))
    assert isinstance(load_classifier(path), Classifier)
