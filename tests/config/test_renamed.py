"""Configs of earlier versions, in today's names."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tiny_folders import write_translator

import attnlab
from attnlab.config.names import readable_name
from attnlab.config.params import params_as_today
from attnlab.config.renamed import with_new_names
from attnlab.experiment.composition import compose
from attnlab.files import write_json
from attnlab.model.model_folder import load_weights, read_config

WRAPPERS = "attnlab.training.optimisation"
OLD_ADAM = {
    "_target_": f"{WRAPPERS}.Adam",
    "learning_rate": 0.004,
    "beta1": 0.9,
    "beta2": 0.999,
    "weight_decay": 0.0,
}
OLD = {
    "adam": OLD_ADAM,
    "sgd": {
        "_target_": f"{WRAPPERS}.SGD", "learning_rate": 1.0, "momentum": 0.0, "weight_decay": 0.0
    },
    "adadelta": {
        "_target_": f"{WRAPPERS}.Adadelta", "learning_rate": 1.0, "rho": 0.95, "epsilon": 1e-6,
        "weight_decay": 0.0,
    },
    "adagrad": {
        "_target_": f"{WRAPPERS}.Adagrad", "learning_rate": 0.15, "accumulator": 0.1,
        "weight_decay": 0.0,
    },
}  # fmt: skip


def with_optimizer(config: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    changed = deepcopy(config)
    changed["training"]["optimizer"] = node
    return changed


@pytest.mark.parametrize("choice", OLD)
def test_old_optimizer_in_new_names_is_bound_as_todays_choice(choice: str) -> None:
    today = compose(["data=copy", f"training/optimizer={choice}"]).logged
    old = with_new_names(with_optimizer(today, OLD[choice]))["training"]["optimizer"]
    new = today["training"]["optimizer"]
    assert old == {name: new[name] for name in old}
    # What today's choice says in addition is torch's own default, or of one kernel alone.
    assert new.keys() - old.keys() <= {"eps", "fused"}


@pytest.mark.parametrize("choice", OLD)
def test_name_of_an_old_experiment_is_that_of_today(choice: str) -> None:
    today = compose(["data=copy", f"training/optimizer={choice}"]).logged
    assert readable_name(with_optimizer(today, OLD[choice])) == readable_name(today)


def test_name_of_an_old_experiment_has_its_changed_setting_in_todays_words() -> None:
    today = compose(["data=copy"]).logged
    old = with_optimizer(today, OLD_ADAM | {"learning_rate": 0.01})
    assert readable_name(old) == "bahdanau · optimizer lr 0.01 · copy · seed 1"


@pytest.mark.parametrize("training", [None, {}, {"optimizer": None}, {"optimizer": {"lr": 1}}])
def test_config_without_an_old_optimizer_stays_as_it_is(training: Any) -> None:
    config = {"training": training, "seed": 1}
    assert with_new_names(config) is config


def test_param_of_an_old_run_has_todays_name() -> None:
    params = params_as_today({"training.optimizer.learning_rate": "0.1", "seed": "1"})
    assert params == {"training.optimizer.lr": "0.1", "seed": "1"}


def test_model_folder_of_an_old_experiment_loads(tmp_path: Path) -> None:
    folder = write_translator(tmp_path)
    config = read_config(folder)
    config["training"] = {"optimizer": OLD_ADAM}
    write_json(folder / "config.json", config)
    loaded = attnlab.load(folder)
    assert loaded.config is not None
    assert loaded.config["training"] == config["training"]


def with_norm(node: Any) -> Any:
    """The node of an encoder of an earlier version: a stack called its layer norm `norm`."""
    if not isinstance(node, dict):
        return node
    old = {name: with_norm(value) for name, value in node.items()}
    if "layer_norm" in old:
        old["norm"] = old.pop("layer_norm")
    return old


@pytest.mark.parametrize("task", ["translation", "classification"])
@pytest.mark.parametrize(
    "choices",
    [
        ["model/encoder=stacked"],
        ["model/encoder=stacked", "model/encoder@model.encoder.first=stacked"],
        ["model/encoder=with_features", "model/encoder@model.encoder.source=stacked"],
    ],
    ids=["stack", "stack in a stack", "stack in another encoder"],
)
def test_old_layer_norm_of_a_stack_is_todays(choices: list[str], task: str) -> None:
    data = "data=copy" if task == "translation" else "data=lesson_reviews"
    today = compose([f"task={task}", data, *choices]).logged
    old = deepcopy(today)
    old["model"]["encoder"] = with_norm(old["model"]["encoder"])
    assert "layer_norm" not in json.dumps(old)
    assert with_new_names(old) == today
    assert with_new_names(today) is today


def with_coverage(config: dict[str, Any]) -> dict[str, Any]:
    """A config of an earlier version: coverage was a group of its own."""
    old = deepcopy(config)
    history = old["model"].pop("history")
    if history is not None:
        history["_target_"] = "attnlab.model.attention.attention.Coverage"
    old["model"]["coverage"] = history
    return old


@pytest.mark.parametrize("choice", ["none", "coverage"])
def test_old_coverage_is_todays_history(choice: str) -> None:
    today = compose(["data=copy", f"model/history={choice}"]).logged
    old = with_coverage(today)
    assert with_new_names(old) == today
    assert readable_name(old) == readable_name(today)


def test_param_of_an_old_coverage_has_todays_name() -> None:
    params = params_as_today({"model/coverage": "see2017", "model.coverage.loss_weight": "0.5"})
    assert params == {"model/history": "coverage", "model.history.loss_weight": "0.5"}


@pytest.mark.parametrize("heads", [None, 2])
def test_model_folder_with_an_old_coverage_loads(
    heads: int | None, tmp_path: Path, tiny_model: Any
) -> None:
    model = tiny_model(history="coverage", heads=heads, dtype=torch.float32)
    today = {name: weight.clone() for name, weight in model.state_dict().items()}
    old = {name.replace(".history.w.", ".coverage.w."): x for name, x in today.items()}
    assert old.keys() != today.keys()
    save_file(old, tmp_path / "weights.safetensors")
    for parameter in model.parameters():
        parameter.data.zero_()
    load_weights(model, tmp_path)
    assert all(torch.equal(found, today[name]) for name, found in model.state_dict().items())
