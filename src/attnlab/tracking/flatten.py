"""A nested config as MLflow's flat params, and the few short ones that people compare runs by."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import masked

_KIND = re.compile(
    r"_(score|projection|scope|readout|feeding|corpus|search|trainer|bridge|encoder|schedule|teacher_forcing)$"
)
LONGEST_VALUE = 6000  # MLflow's limit
LONGEST_KEY = 250
# Choices inside the model that are known by the name of their group.
OF_THE_MODEL = (
    "attention",
    "projection",
    "normaliser",
    "scope",
    "coverage",
    "heads",
    "decoder",
    "readout",
    "input_feeding",
    "bridge",
)
# Settings whose null is the choice `none` of a group.
NONE_FOR_NULL = ("search", *(f"model.{name}" for name in OF_THE_MODEL))


def choice_name(node: Any) -> str | None:
    """`{"_target_": "...BahdanauScore"}` is `bahdanau`; null is `none`; a node without a target has no name."""
    if node is None:
        return "none"
    target = node.get("_target_") if isinstance(node, Mapping) else None
    if not isinstance(target, str):
        return None
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", target.rpartition(".")[2]).lower()
    return _KIND.sub("", words)


def dotted_params(config: Mapping[str, Any]) -> dict[str, str]:
    """`{"model": {"size": 3}}` is `{"model.size": "3"}`; lists are JSON, passwords in addresses masked.

    null is `null`, and `none` where a group has that choice: `{"model.attention": "none"}`.
    """
    return {
        _key(key): "none" if value is None and key in NONE_FOR_NULL else _text(value)
        for key, value in _leaves(config, "")
    }


def short_params(config: Mapping[str, Any]) -> dict[str, str]:
    """The choices by short names: `attention: bahdanau`, `padding: pre-post`, `teacher_forcing: 0.5`, ..."""
    model, data = _mapping(config.get("model")), _mapping(config.get("data"))
    named = {
        **{name: choice_name(model[name]) for name in OF_THE_MODEL if name in model},
        "encoder": _encoder(_mapping(model.get("encoder"))),
        "padding": _padding(_mapping(config.get("padding"))),
        "teacher_forcing": _teacher_forcing(_mapping(_mapping(config.get("training")).get("teacher_forcing"))),
        "data": _data(data),
        "tokenizer": choice_name(data["tokenizer"]) if "tokenizer" in data else None,
        "search": choice_name(config["search"]) if "search" in config else None,
        "seed": config.get("seed"),
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def readable_name(short: Mapping[str, str]) -> str:
    """`bahdanau · dates · seed 1`."""
    seed = f"seed {short['seed']}" if "seed" in short else None
    attention = short.get("attention")
    first = "no attention" if attention == "none" else attention
    return " · ".join(word for word in (first, short.get("data"), seed) if word) or "run"


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif path:
        yield path, node


def _key(key: str) -> str:
    """MLflow refuses most punctuation, and names that would lead out of a folder."""
    key = re.sub(r"[^\w.\- :]", "_", key).strip(".") or "_"
    return key if len(key) <= LONGEST_KEY else f"{key[: LONGEST_KEY - 17]}.{_digest(key)}"


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = masked(text)
    if len(text) > LONGEST_VALUE:
        note = f"… ({len(text)} characters, SHA-256 {_digest(text)}…)"
        text = text[: LONGEST_VALUE - len(note)] + note
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _encoder(node: Mapping[str, Any]) -> str | None:
    if "cell" not in node:
        return choice_name(node) if node else None
    shape = f"{node.get('layers', 1)}x{node['hidden_size']}" if "hidden_size" in node else ""
    direction = "both ways" if node.get("bidirectional") else "one way"
    return " ".join(word for word in (str(node["cell"]), shape, direction) if word)


def _padding(node: Mapping[str, Any]) -> str | None:
    if not {"encoder", "decoder"} <= set(node):
        return None
    unmasked = "" if node.get("attention_masked", True) else " unmasked"
    read = " read" if node.get("recurrence") == "read" else ""
    return f"{node['encoder']}-{node['decoder']}{unmasked}{read}"


def _teacher_forcing(node: Mapping[str, Any]) -> str | None:
    """The schedule (a constant by its ratio), and the coin and the guess where they are not the usual ones."""
    name = choice_name(node) if node else None
    schedule = str(node["ratio"]) if name == "constant" and "ratio" in node else name
    coin = "" if node.get("coin", "token") == "token" else f"coin per {node['coin']}"
    guess = "sampled" if node.get("guess") == "sample" else ""
    return " ".join(word for word in (schedule, coin, guess) if word) or None


def _data(node: Mapping[str, Any]) -> str | None:
    """The choice, and for a corpus from outside its own name (`multi30k_tok` of `../data/multi30k_tok`)."""
    place = node.get("path")
    if isinstance(place, str) and place.strip("/"):
        return masked(place).rstrip("/").rpartition("/")[2]
    return choice_name(node) if node else None
