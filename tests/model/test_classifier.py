"""The classifier against its formula, its padding, its parts, and its model folder."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS, PAD, Padding
from attnlab.config.binding import bind
from attnlab.errors import ExperimentError
from attnlab.model.classifier import Classifier
from attnlab.model.model_folder import FROM_LABELLED_DATA, ModelFacts, load_classifier, load_model, save_model

CONF = Path(__file__).resolve().parents[2] / "conf" / "model"
SCORES = sorted(path.stem for path in (CONF / "attention").glob("*.yaml") if path.stem != "none")
SENTENCES = [[5, 4, 9, 7], [6], [10, 4, 8, 8, 5, 9, 4], [7, 7]]
VOCABULARY = 11


def choice(group: str, name: str) -> dict[str, Any] | None:
    node = yaml.safe_load((CONF / group / f"{name}.yaml").read_text(encoding="utf-8"))
    return None if "_target_" not in node else node


def config(
    *,
    attention: str = "bahdanau",
    scope: str = "global",
    normaliser: str = "softmax",
    projection: str = "none",
    heads: str = "one",
    cell: str = "lstm",
    bidirectional: bool = True,
    layers: int = 1,
    dropout: float = 0.0,
    **encoder: Any,
) -> dict[str, Any]:
    """The node of a small classifier, made of the project's own YAML files."""
    parts = {"attention": attention, "scope": scope, "normaliser": normaliser, "projection": projection, "heads": heads}
    return {
        "_target_": "attnlab.model.classifier.Classifier",
        "encoder": {
            "_target_": "attnlab.model.encoder.Encoder",
            "cell": cell,
            "embedding_size": 6,
            "hidden_size": 4,
            "layers": layers,
            "bidirectional": bidirectional,
            "merge": "concatenate",
            "reverse_source": False,
            "skipping": "packed",
            "dropout": dropout,
            "layer_dropout": dropout,
            **encoder,
        },
        **{group: choice(group, name) for group, name in parts.items()},
        "dense_size": 20,
        "dropout": 0.5,
    }


def build(num_classes: int = 2, padding: Padding = Padding(), **changed: Any) -> Classifier:  # noqa: B008 (frozen)
    torch.manual_seed(1)
    part = bind(config(**changed), Classifier, "model")
    model: Classifier = part(source_vocabulary_size=VOCABULARY, num_classes=num_classes, padding=padding)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2.0  # at birth small models hardly prefer anything
    return model.double().eval()


def padded(sentences: list[list[int]], side: str, more: int = 0) -> tuple[Tensor, Tensor]:
    """Sentences with their <eos>, padded to the longest and `more`."""
    width = max(map(len, sentences)) + 1 + more
    rows = [[*sentence, EOS] for sentence in sentences]
    pads = [[PAD] * (width - len(row)) for row in rows]
    ids = [[*pad, *row] if side == "pre" else [*row, *pad] for row, pad in zip(rows, pads, strict=True)]
    source = torch.tensor(ids)
    return source, source != PAD


# The formula, from the equations: Hochreiter and Schmidhuber's LSTM with a forget gate, Bahdanau's additive score.


def lstm(layer: torch.nn.Module, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """x (S, E) -> h (S, H): i, f, o = sigmoid, g = tanh; c' = f c + i g; h' = o tanh(c')."""
    weights = {name: value.detach().numpy() for name, value in layer.named_parameters()}
    w, u = weights["weight_ih_l0"], weights["weight_hh_l0"]
    b = weights["bias_ih_l0"] + weights["bias_hh_l0"]
    h = c = np.zeros(u.shape[1])
    states = []
    for token in x:
        i, f, g, o = np.split(w @ token + u @ h + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.array(states)


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    e = np.exp(x - x.max())
    return e / e.sum()


def by_formula(model: Classifier, sentence: list[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities (C,) and attention weights (S,) of one sentence."""
    p = {name: value.detach().numpy() for name, value in model.named_parameters()}
    x = p["encoder.embedding.weight"][[*sentence, EOS]]
    forwards = lstm(model.encoder.forward_layers[0], x)
    backwards = lstm(model.encoder.backward_layers[0], x[::-1])[::-1]
    h = np.concatenate([forwards, backwards], axis=1)  # (S, D)
    q = np.concatenate([forwards[-1], backwards[0]])
    w, u, v = (p[f"attention.score.{name}"] for name in ("W.weight", "U.weight", "v"))
    a = softmax(np.array([v @ np.tanh(w @ q + u @ h_s) for h_s in h]))
    c = a @ h
    d = np.maximum(p["dense.weight"] @ c + p["dense.bias"], 0)
    z = p["output.weight"] @ d + p["output.bias"]
    probabilities = np.concatenate([1 - sigmoid(z), sigmoid(z)]) if len(z) == 1 else softmax(z)
    return probabilities, a


@pytest.mark.parametrize("num_classes", [2, 3])
def test_classifier_equals_its_formula(num_classes: int) -> None:
    model = build(num_classes)
    assert model.output.out_features == (1 if num_classes == 2 else num_classes)
    source, mask = padded(SENTENCES, "pre")
    found = model(source, mask)
    for i, sentence in enumerate(SENTENCES):
        probabilities, weights = by_formula(model, sentence)
        assert np.abs(found.log_probabilities[i].exp().detach().numpy() - probabilities).max() < 1e-10
        assert np.abs(found.attention_weights[i][mask[i]].detach().numpy() - weights).max() < 1e-10
    assert found.attention_weights[~mask].abs().sum() == 0


@pytest.mark.parametrize("num_classes", [2, 3])
def test_classifier_gradient_matches_finite_differences(num_classes: int) -> None:
    model = build(num_classes)
    source, mask = padded(SENTENCES[:2], "post")
    parameters = [p for p in model.parameters() if p is not model.encoder.embedding.weight]

    def loss(*_: Tensor) -> Tensor:
        return model(source, mask).log_probabilities[torch.arange(2), torch.tensor([1, 0])].sum()

    assert torch.autograd.gradcheck(loss, parameters, fast_mode=True)


@pytest.mark.parametrize(("attention", "scope"), itertools.product(SCORES, ["global", "local_p"]))
def test_classified_sentence_alone_equals_itself_in_any_batch(attention: str, scope: str) -> None:
    """Before or after it, few pads or many: nothing changes."""
    models = {side: build(3, Padding(encoder=side), attention=attention, scope=scope) for side in ("pre", "post")}
    alone = [models["pre"](*padded([sentence], "pre")).log_probabilities[0] for sentence in SENTENCES]
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
        {"cell": "gru", "layers": 2},
        {"bidirectional": False},
        {"merge": "sum"},
        {"reverse_source": True},
    ],
    ids=str,
)
def test_every_score_goes_with_every_other_choice(attention: str, changed: dict[str, Any]) -> None:
    if attention == "location" and {"projection", "heads"} & set(changed):
        with pytest.raises((ExperimentError, ValueError), match=r"choose model/(projection=none|heads=one)"):
            build(3, attention=attention, **changed)
        return
    model = build(3, attention=attention, **changed)
    found = model(*padded(SENTENCES, "pre"))
    torch.testing.assert_close(found.attention_weights.sum(1), torch.ones(4).double())
    torch.testing.assert_close(found.log_probabilities.exp().sum(1), torch.ones(4).double())
    found.log_probabilities[:, 0].sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert without == []


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


def test_half_precision_keeps_whole_logarithms() -> None:
    model = build(3).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = model(*padded(SENTENCES, "pre"))
    assert found.log_probabilities.dtype is torch.float32
    torch.testing.assert_close(found.log_probabilities.exp().sum(1), torch.ones(4), rtol=0, atol=1e-6)


def test_classifier_with_a_window_over_the_target_is_refused() -> None:
    with pytest.raises(ExperimentError, match=r"model\.scope local_m follows the target .* choose model/scope=global"):
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
    for name in FROM_LABELLED_DATA:
        (prepared / name).write_text("{}")
    facts = ModelFacts(VOCABULARY, "f" * 16, 7, num_classes=3)
    sections = {"model": config(), "padding": {"_target_": "attnlab.batch.Padding"}}
    save_model(tmp_path / "model", model.state_dict(), sections, facts, prepared)
    return tmp_path / "model", model


def test_saved_classifier_loads_unchanged(folder: tuple[Path, Classifier]) -> None:
    path, model = folder
    assert {*FROM_LABELLED_DATA, "model.json", "config.json", "weights.safetensors"} == {
        file.name for file in path.iterdir()
    }
    loaded = load_classifier(str(path))
    assert not loaded.training
    source, mask = padded(SENTENCES, "pre")
    assert torch.equal(loaded(source, mask).log_probabilities, model(source, mask).log_probabilities)


def test_folder_of_another_task_is_refused(folder: tuple[Path, Classifier]) -> None:
    path, _ = folder
    with pytest.raises(ExperimentError, match="goes with task=classification"):
        load_model(path)
    facts = json.loads((path / "model.json").read_text())
    (path / "model.json").write_text(json.dumps(facts | {"num_classes": None, "target_vocabulary_size": 9}))
    with pytest.raises(ExperimentError, match="goes with task=translation"):
        load_classifier(path)
