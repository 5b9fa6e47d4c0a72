"""Params and tags of a run: its config as flat MLflow params, short choices, name and origin."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attnlab.config.identity import PACKAGE_ROOT
from attnlab.config.renamed import params_with_new_names
from attnlab.errors import masked
from attnlab.project import IS_INSTALLED

NO_REVISION = "none: "  # starts the tag `git_revision` of code that is in no git checkout
LONGEST_VALUE = 6000  # MLflow's limit
_KIND = re.compile(
    r"_(score|projection|scope|readout|feeding|corpus|search|trainer|bridge|encoder|attention_schedule|schedule|teacher_forcing"
    r"|initialisation|output|gate|normaliser)$"
)
# Choices inside the model that are known by the name of their group.
OF_THE_MODEL = (
    "attention", "projection", "normaliser", "scope", "history", "heads", "gate", "decoder",
    "readout", "output", "input_feeding", "bridge",
)  # fmt: skip
# Settings whose null is the choice `none` of a group.
NONE_FOR_NULL = ("search", *(f"model.{name}" for name in OF_THE_MODEL))
# Choices of padding with pads that are attended to, and those that are read too.
_UNMASKED = {"pre_post_unmasked": "unmasked", "pre_post_unmasked_read": "unmasked_read"}
# How params spell values that are neither text nor numbers.
_PLAIN = {"true": True, "false": False, "null": None}
_PACKAGES = ("torch", "pytorch-lightning", "mlflow", "numpy", "tokenizers", "datasets")


def choice_name(node: Any) -> str | None:
    """The short name of a node's class: `bahdanau` for `{"_target_": "...BahdanauScore"}`.

    `none` for null, and None for a node without a target.
    """
    if node is None:
        return "none"
    target = node.get("_target_") if isinstance(node, Mapping) else None
    if not isinstance(target, str):
        return None
    # `AdamW` is one word.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z](?!$))", "_", target.rpartition(".")[2]).lower()
    return _KIND.sub("", words)


def dotted_params(config: Mapping[str, Any]) -> dict[str, str]:
    """A config as flat params: `{"model": {"size": 3}}` is `{"model.size": "3"}`.

    Lists are JSON, and passwords in addresses are masked. null is left out, but is `none` where a
    group has that choice: `{"model.attention": "none"}`. The note and the tags of the run are left
    out, too: they may change, and params never do.
    """
    params = {}
    for key, value in leaves(config):
        if value is None and key in NONE_FOR_NULL:
            value = "none"
        if value is None or key.startswith(("tracking.note", "tracking.tags")):
            continue
        params[accepted_name(key)] = masked(as_text(value))[:LONGEST_VALUE]
    return params


def short_params(config: Mapping[str, Any]) -> dict[str, str]:
    """The choices by short names: `attention: bahdanau`, `teacher_forcing: 0.5`, ...

    Sections may be missing or null.
    """
    model = config.get("model") or {}
    data = config.get("data") or {}
    training = config.get("training") or {}

    named: dict[str, Any] = {}
    if isinstance(config.get("task"), Mapping):
        named["task"] = choice_name(config["task"])
    if model.get("fault") is not None:
        named["fault"] = choice_name(model["fault"])
    for name in OF_THE_MODEL:
        if name in model:
            named[name] = choice_name(model[name])
    named["encoder"] = _encoder(model.get("encoder") or {})
    named["padding"] = _padding(config.get("padding") or {})
    named["teacher_forcing"] = _teacher_forcing(training.get("teacher_forcing") or {})
    named["data"] = _data(data)
    if "tokenizer" in data:
        named["tokenizer"] = choice_name(data["tokenizer"])
    if "search" in config:
        named["search"] = choice_name(config["search"])
    named["hardware"] = _hardware(config.get("hardware") or {})
    named["seed"] = config.get("seed")
    return {name: str(value) for name, value in named.items() if value is not None}


def params_as_today(params: Mapping[str, str]) -> dict[str, str]:
    """The params of a run in the tracker, with the short params in their current form.

    The params of a run never change, and runs of other versions say `pre-post` for `pre_post`, or
    nothing of the hardware.
    """
    config: dict[str, dict[str, Any]] = {"padding": {}, "hardware": {}}
    for name, text in params.items():
        section, _, key = name.partition(".")
        if section in config and key:
            config[section][key] = _value_of(text)
    return {**params_with_new_names(params), **short_params(config)}


def _value_of(text: str) -> Any:
    """The value that a param spells: a number, true, false, null, or the text itself."""
    if text.isdecimal():
        return int(text)
    return _PLAIN.get(text, text)


def accepted_name(name: str) -> str:
    """A param's or metric's name that MLflow takes: word characters, `_ . - / :` and spaces."""
    return re.sub(r"[^\w.\- :/]", "_", name)


def origin_tags() -> dict[str, str]:
    """Tags that say which code ran, on what."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "unknown"
    return {
        **git_tags(PACKAGE_ROOT),
        "host": platform.node(),
        "platform": platform.platform(),
        "version.python": platform.python_version(),
        "version.attnlab": version("attnlab"),
        **{f"version.{package}": version(package) for package in _PACKAGES},
        "mlflow.source.type": "LOCAL",
        "mlflow.source.name": Path(sys.argv[0]).name or "python",
        "mlflow.user": user,
    }


def git_tags(code: Path) -> dict[str, str]:
    """The revision of the checkout that `code` belongs to, and whether it has local changes.

    DVC's lock files do not count: DVC writes them while the stages run. A folder that merely lies
    inside a repository (an unpacked archive, an installed package) belongs to none.
    """
    belongs = git(code, "ls-files", "--error-unmatch", ".") is not None
    revision = git(code, "rev-parse", "HEAD") if belongs else None
    if revision is None:
        kind = "installed package" if IS_INSTALLED else "no git checkout"
        name = f"attnlab {version('attnlab')} ({kind})"
        return {"git_revision": f"{NO_REVISION}{name}", "git_dirty": "unknown"}
    whole_checkout, without_dvc = ":/", ":(top,exclude,glob)**/dvc.lock"
    status = ("status", "--porcelain", "--untracked-files=normal")
    changes = git(code, *status, whole_checkout, without_dvc)
    is_dirty = "unknown"
    if changes is not None:
        is_dirty = "true" if changes else "false"
    return {
        "git_revision": revision,
        "git_dirty": is_dirty,
        "mlflow.source.git.commit": revision,
    }


def git(folder: Path, *arguments: str) -> str | None:
    """What git prints, None where there is no git or it fails."""
    command = ["git", "-C", str(folder), *arguments]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of each value of a config, with paths as in overrides.

    An empty mapping is a value.
    """
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif path:
        yield path, node


def value_at(config: Any, path: str) -> Any:
    """The value at a dotted path of a config; None where there is none."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, Mapping) else None
    return config


def as_text(value: Any) -> str:
    """A config value as in YAML: `null`, `true`, text without quotes."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _encoder(node: Mapping[str, Any]) -> str | None:
    """`gru 2x256 both ways`: the cell, layers by width, and direction; of others the choice.

    `lstm 1x64 both ways, self_attention` for a stack, and likewise for features and their source.
    """
    if not node:
        return None
    for names in (("first", "then"), ("features", "source")):
        parts = [node.get(name) for name in names]
        if all(isinstance(part, Mapping) for part in parts):
            named = [_encoder(part) for part in parts if isinstance(part, Mapping)]
            return ", ".join(name for name in named if name is not None)
    if "cell" not in node:
        return choice_name(node)

    words = [str(node["cell"])]
    if "hidden_size" in node:
        words.append(f"{node.get('layers', 1)}x{node['hidden_size']}")
    words.append("both ways" if node.get("bidirectional") else "one way")
    return " ".join(words)


def _padding(node: Mapping[str, Any]) -> str | None:
    """The padding choice that has these values, such as `pre_post`.

    Values that no choice has get a name of the same pattern. None without both sides.
    """
    if not {"encoder", "decoder"} <= set(node):
        return None
    unmasked = "" if node.get("attention_masked", True) else "_unmasked"
    read = "_read" if node.get("recurrence") == "read" else ""
    name = f"{node['encoder']}_{node['decoder']}{unmasked}{read}"
    return _UNMASKED.get(name, name)


def _hardware(node: Mapping[str, Any]) -> str | None:
    """`cpu`, `4 x gpu`, `gpu bf16`: the processes, and the precision that they compute in."""
    if "accelerator" not in node:
        return None
    text = str(node["accelerator"])
    devices, nodes = node.get("devices", 1), node.get("nodes", 1)
    if isinstance(devices, int) and isinstance(nodes, int) and devices * nodes > 1:
        text = f"{devices * nodes} x {text}"
    if str(node.get("precision", 32)) != "32":
        text = f"{text} {node['precision']}"
    return text


def _teacher_forcing(node: Mapping[str, Any]) -> str | None:
    """The schedule, a constant by its ratio."""
    if not node:
        return None
    name = choice_name(node)
    if name == "constant" and "ratio" in node:
        return str(node["ratio"])
    return name


def _data(node: Mapping[str, Any]) -> str | None:
    """The data choice with its split or language (`scan_length`, `lesson_handful_ko_en`).

    A corpus from outside has its own name: `multi30k` for `../data/multi30k` or the hub's
    `bentrevett/multi30k`.
    """
    if not node:
        return None
    name = choice_name(node)
    source = node.get("path") or node.get("dataset")
    is_from_outside = name in ("hub", "labelled")
    if is_from_outside and isinstance(source, str) and source.strip("/"):
        return masked(source).rstrip("/").rpartition("/")[2]

    if node.get("handful"):
        name = f"{name}_handful"
    languages = str(node.get("languages") or "").replace("-", "_")
    part = node.get("split") or node.get("language") or languages
    if name and part:
        return f"{name}_{part}"
    return name
