"""A model as an exported page holds it: its parts, its settings, its tokenizers and its weights."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.data.tokenizer import Tokenizer
from attnlab.explorer.supported import (
    NORMAL_FORMS,
    SUPPORTED,
    full_name,
    kind_of,
    name_of,
    steps_of,
    tokenizers_of,
)
from attnlab.model.classifier import Classifier
from attnlab.tasks.classification.classifier import SentenceClassifier
from attnlab.tasks.edited_source import heads_of, score_of
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.translation.translator import Translator


def exported(name: str, predictor: Predictor) -> dict[str, Any]:
    """What the engine needs of a supported model, as JSON can hold it."""
    weights, places = packed_weights(predictor.model)
    tokenizers = {
        f"{side}_tokenizer": tokenizer_config(tokenizer)
        for side, tokenizer in tokenizers_of(predictor).items()
    }
    common = {
        "name": name,
        "model": model_config(predictor.model),
        "weights": weights,
        "places": places,
        "cleaning": {
            "unicode": predictor.cleaning.unicode,
            "whitespace": predictor.cleaning.whitespace,
        },
        **tokenizers,
    }
    if isinstance(predictor, SentenceClassifier):
        return {"kind": "classification", "labels": predictor.labels, **common}
    assert isinstance(predictor, Translator)
    search = predictor.search({})
    kind = SUPPORTED["search"][type(search)]
    settings = {"name": kind, **asdict(search)}  # type: ignore[call-overload]
    return {"kind": "translation", "search": settings, **common}


def model_config(model: Any) -> dict[str, Any]:
    """The parts of a supported model, by the names of their classes, with their settings."""
    encoder = model.encoder
    padding = asdict(model.padding)
    config: dict[str, Any] = {
        "padding": padding,
        "encoder": {
            "cell": _cell_of(encoder.forward_layers[0]),
            "layers": len(encoder.forward_layers),
            "bidirectional": len(encoder.backward_layers) > 0,
            "merge": encoder.merge,
            "reverse_source": encoder.reverse_source,
        },
    }
    if isinstance(model, Classifier):
        query = "sentence" if model.learned_query is None else "learned"
        return {**config, "query": query, "attention": attention_config(model.attention)}

    decoder = model.decoder
    feeding = decoder.body.input_feeding
    shape = decoder.body.state_shape
    return {
        **config,
        "bridge": {"name": name_of(model.bridge), **asdict(shape)},
        "decoder": {
            "name": name_of(decoder),
            "cell": _cell_of(decoder.body.cell.cells[0]),
            "layers": shape.layers,
            "into_cell": decoder.into_cell,
            "into_readout": decoder.into_readout,
            "fed_size": None if feeding is None else feeding.size,
            "attention": attention_config(decoder.attention),
        },
        "readout": name_of(decoder.body.readout),
        "input_feeding": None if feeding is None else name_of(feeding),
    }


def attention_config(attention: Any) -> dict[str, Any] | None:
    """The parts of an attention; None for a model without."""
    if attention is None:
        return None
    head = heads_of(attention)[0]  # all heads have the same parts
    score = score_of(head)
    scope = head.scope
    return {
        "heads": None if head is attention else attention.heads,
        "score": name_of(score),
        "query_size": getattr(score, "query_size", None),
        "projected": head.score is not score,
        "normaliser": {
            "name": name_of(head.normaliser),
            "alpha": getattr(head.normaliser, "fixed_alpha", None),
            "k": getattr(head.normaliser, "k", None),
            "reach": getattr(head.normaliser, "reach", None),
        },
        "scope": {
            "name": name_of(scope),
            "width": getattr(scope, "width", None),
            "renormalise": getattr(scope, "renormalise", False),
        },
        "history": history_config(head.history),
    }


def history_config(history: Any) -> dict[str, Any] | None:
    """What the engine must know of a history beside its weights; None without one."""
    if history is None:
        return None
    settings = {
        name: getattr(history, name) for name in ("hard", "chunk_size") if hasattr(history, name)
    }
    return {"name": name_of(history), **settings}


def _cell_of(layer: nn.Module) -> str:
    """rnn, gru or lstm."""
    for kind, names in {
        "rnn": (nn.RNN, nn.RNNCell),
        "gru": (nn.GRU, nn.GRUCell),
        "lstm": (nn.LSTM, nn.LSTMCell),
    }.items():
        if isinstance(layer, names):
            return kind
    raise TypeError(f"{full_name(type(layer))} is no recurrent layer of torch")


def tokenizer_config(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the engine needs of a supported tokenizer."""
    state = tokenizer.as_json()
    ids = state["model"]["vocab"]
    steps = [step["type"] for step in steps_of(state)]
    forms = [step.lower() for step in steps if step in NORMAL_FORMS]
    return {
        "pieces": kind_of(tokenizer),
        "lowercase": "Lowercase" in steps,
        "normalization": forms[0] if forms else "none",
        "vocabulary": sorted(ids, key=ids.__getitem__),
        "merges": state["model"].get("merges", []),
    }


def size_of_weights(model: nn.Module) -> int:
    """The characters that the weights of a model take in a page."""
    numbers = sum(weight.numel() for weight in model.parameters())
    return numbers * 4 * 4 // 3  # four bytes each, and four characters for three bytes


def packed_weights(model: nn.Module) -> tuple[str, dict[str, tuple[int, list[int]]]]:
    """The weights of a model in float32, as base64, and of each its start and its shape.

    Tied weights, which share their memory, are stored once.
    """
    places: dict[str, tuple[int, list[int]]] = {}
    start_of: dict[int, int] = {}
    packed: list[Tensor] = []
    size = 0
    for name, weight in model.state_dict().items():
        memory = weight.data_ptr()
        if memory not in start_of:
            start_of[memory] = size
            packed.append(weight.detach().to("cpu", torch.float32).reshape(-1))
            size += weight.numel()
        places[name] = (start_of[memory], list(weight.shape))
    numbers = torch.cat(packed).numpy().astype("<f4")
    return base64.b64encode(numbers.tobytes()).decode("ascii"), places
