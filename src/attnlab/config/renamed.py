"""Settings, choices and classes that have another name today, and configs with their old names.

A command with an old name is refused with the new one. Model folders and runs of earlier versions
keep the config that they were trained with; `with_new_names` is what they say in today's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPTIMIZER = "training.optimizer"
_NEW_NAMES = {
    f"{_OPTIMIZER}.learning_rate": f"{_OPTIMIZER}.lr",
    f"{_OPTIMIZER}.epsilon": f"{_OPTIMIZER}.eps",
    f"{_OPTIMIZER}.accumulator": f"{_OPTIMIZER}.initial_accumulator_value",
}
# Two settings that one list has replaced.
_BETAS = (f"{_OPTIMIZER}.beta1", f"{_OPTIMIZER}.beta2")

_NEW_CHOICES = {
    ("experiment", "lesson_bahdanau"): "lesson/bahdanau",
    ("experiment", "lesson_classifier"): "lesson/classifier",
}

_WRAPPERS = "attnlab.training.optimisation."
_NEW_TARGETS = {
    f"{_WRAPPERS}Adam": "torch.optim.AdamW",
    f"{_WRAPPERS}SGD": "torch.optim.SGD",
    f"{_WRAPPERS}Adadelta": "torch.optim.Adadelta",
    f"{_WRAPPERS}Adagrad": "torch.optim.Adagrad",
}


def new_name(path: str) -> str | None:
    """Today's path of a setting, or None if it has not changed."""
    if path in _BETAS:
        return f"{_OPTIMIZER}.betas"
    return _NEW_NAMES.get(path)


def new_choice(group: str, choice: str) -> str | None:
    """Today's name of a choice of a group, or None if it has not changed."""
    return _NEW_CHOICES.get((group, choice))


def new_target(target: Any) -> str | None:
    """Today's node for a class, in words, or None if the class has not changed."""
    if not isinstance(target, str) or target not in _NEW_TARGETS:
        return None
    return f"{_NEW_TARGETS[target]}, with _partial_: true and torch's own settings"


def with_new_names(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plain config of an earlier version in today's names; any other one as it is."""
    training = config.get("training")
    if not isinstance(training, Mapping):
        return config
    node = training.get("optimizer")
    if not isinstance(node, Mapping):
        return config
    target = node.get("_target_")
    if target not in _NEW_TARGETS:
        return config

    renamed: dict[str, Any] = {"_target_": _NEW_TARGETS[target], "_partial_": True}
    for name, value in node.items():
        if name not in ("_target_", "beta1", "beta2"):
            path = f"{_OPTIMIZER}.{name}"
            renamed[_NEW_NAMES.get(path, path).rpartition(".")[2]] = value
    if "beta1" in node and "beta2" in node:
        renamed["betas"] = [node["beta1"], node["beta2"]]
    return {**config, "training": {**training, "optimizer": renamed}}


def params_with_new_names(params: Mapping[str, str]) -> dict[str, str]:
    """The flat params of a run in the tracker, in today's names."""
    return {_NEW_NAMES.get(name, name): value for name, value in params.items()}
