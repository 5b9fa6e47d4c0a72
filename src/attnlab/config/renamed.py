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
    "model.coverage": "model.history",
    "model.coverage.loss_weight": "model.history.loss_weight",
}
# Two settings that one list has replaced.
_BETAS = (f"{_OPTIMIZER}.beta1", f"{_OPTIMIZER}.beta2")

_NEW_CHOICES = {
    ("experiment", "lesson_bahdanau"): "lesson/bahdanau",
    ("experiment", "lesson_classifier"): "lesson/classifier",
}
# Groups, with their choices: coverage has become one of several histories.
_NEW_GROUPS = {"model/coverage": ("model/history", {"see2017": "coverage", "none": "none"})}

_WRAPPERS = "attnlab.training.optimisation."
_NEW_TARGETS = {
    f"{_WRAPPERS}Adam": "torch.optim.AdamW",
    f"{_WRAPPERS}SGD": "torch.optim.SGD",
    f"{_WRAPPERS}Adadelta": "torch.optim.Adadelta",
    f"{_WRAPPERS}Adagrad": "torch.optim.Adagrad",
}
_COVERAGE = "attnlab.model.attention.attention.Coverage"
_NEW_COVERAGE = "attnlab.model.histories.coverage.Coverage"
_PLAIN_OUTPUT = "attnlab.model.outputs.linear.LinearOutput"
# Its setting `norm` was taken for that of a Transformer, which its decoder takes over.
_STACK = "attnlab.model.encoders.stacked.StackedEncoder"


def new_name(path: str) -> str | None:
    """Today's path of a setting, or None if it has not changed."""
    if path in _BETAS:
        return f"{_OPTIMIZER}.betas"
    return _NEW_NAMES.get(path)


def new_choice(group: str, choice: str) -> str | None:
    """Today's name of a choice of a group, or None if it has not changed."""
    return _NEW_CHOICES.get((group, choice))


def new_group(group: str) -> str | None:
    """Today's group and choices in place of a former one, in words; None where it is none."""
    if group not in _NEW_GROUPS:
        return None
    today, choices = _NEW_GROUPS[group]
    examples = ", ".join(
        f"{group}={old} is {today}={new}" for old, new in choices.items() if old != new
    )
    return f"{group} is now {today}: {examples}"


def new_target(target: Any) -> str | None:
    """Today's node for a class, in words, or None if the class has not changed."""
    if not isinstance(target, str) or target not in _NEW_TARGETS:
        return None
    return f"{_NEW_TARGETS[target]}, with _partial_: true and torch's own settings"


def with_new_names(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plain config of an earlier version in today's names; any other one as it is."""
    return _with_new_optimizer(with_todays_parts(config))


def with_todays_parts(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plain config whose model has the parts and settings of today."""
    return _with_output(_with_history(_with_layer_norm(config)))


def _with_layer_norm(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config whose stacked encoders call their layer norm as they do today."""
    model = config.get("model")
    if not isinstance(model, Mapping) or "encoder" not in model:
        return config
    encoder = _renamed_norm(model["encoder"])
    if encoder is model["encoder"]:
        return config
    return {**config, "model": {**model, "encoder": encoder}}


def _renamed_norm(node: Any) -> Any:
    """The node of an encoder, whose parts may be stacks; the same one where nothing changes."""
    if not isinstance(node, Mapping):
        return node
    renamed = {name: _renamed_norm(value) for name, value in node.items()}
    is_former = node.get("_target_") == _STACK and "norm" in node
    if is_former:
        renamed["layer_norm"] = renamed.pop("norm")
    changes_a_part = any(renamed.get(name) is not value for name, value in node.items())
    return renamed if is_former or changes_a_part else node


def _with_output(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config whose model has an output where an earlier version knew the plain one alone."""
    model = config.get("model")
    if not isinstance(model, Mapping) or "output" in model or "readout" not in model:
        return config
    return {**config, "model": {**model, "output": {"_target_": _PLAIN_OUTPUT}}}


def _with_history(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config whose model has a history where an earlier version had a coverage."""
    model = config.get("model")
    if not isinstance(model, Mapping) or "coverage" not in model:
        return config
    renamed = {name: value for name, value in model.items() if name != "coverage"}
    history = model["coverage"]
    if isinstance(history, Mapping) and history.get("_target_") == _COVERAGE:
        history = {**history, "_target_": _NEW_COVERAGE}
    return {**config, "model": {**renamed, "history": history}}


def _with_new_optimizer(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A wrapper of earlier versions as torch's own optimiser."""
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
    renamed = {}
    for name, value in params.items():
        if name in _NEW_GROUPS:
            group, choices = _NEW_GROUPS[name]
            renamed[group] = choices.get(value, value)
        else:
            renamed[_NEW_NAMES.get(name, name)] = value
    return renamed
