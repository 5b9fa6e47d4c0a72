"""What an experiment that goes on from a finished one may change: `training.continue_from`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from attnlab.config.params import leaves, value_at
from attnlab.config.target import TARGET
from attnlab.errors import show
from attnlab.training.optimisation import PlateauSchedule, follows_step
from attnlab.training.settings import Training

_OPTIMIZER = "training.optimizer"
_SCHEDULE = "training.schedule"

_JUDGED = "the best checkpoint so far was chosen by it"
_ORDER = "it decides which batches of the epoch are left"
_STATE = "the optimiser's state was made with it"

_OTHERS = (
    " (training/schedule=constant, cosine, inverse_square_root and halving take a new rate and new "
    "settings)"
)
_STEP_BY_STEP = f"step by step{_OTHERS}"

# Sections and settings that cannot change, by their config paths, and why.
_FIXED = {
    "seed": "the random numbers go on from the last step",
    "training.monitor": _JUDGED,
    "training.validation_search": _JUDGED,
    "training.limit_batches": _JUDGED,
    "training.batching": _ORDER,
    "training.accumulate": _ORDER,
    "training.attention_schedule": "it decided from which step on the attention was on",
}
# Settings of torch's optimisers that decide what state they keep.
_OF_FIRST_STEP = (
    "initial_accumulator_value",
    "amsgrad",
    "centered",
    "capturable",
    "differentiable",
    "foreach",
    "fused",
)
# What the schedulers of torch with these names set at each step, beside the rate.
_CYCLING = ("OneCycleLR", "CyclicLR")


def problems_of_continuing(
    config: Mapping[str, Any], parent: Mapping[str, Any], training: Training
) -> Iterator[str]:
    """What this experiment would have had to do otherwise from its first step on, as sentences.

    Each names the config path, what the other experiment has, and what is given.

    config, parent: the configs of both.
    training: the settings of this one.
    """
    reasons: dict[str, str] = {}
    for path, reason in _FIXED.items():
        for place in _different(config, parent, path):
            reasons[place] = reason

    mine, theirs = config["training"], parent["training"]
    # null is no request: the weights are those of the other experiment in any case.
    if mine["initial_weights"] not in (None, theirs["initial_weights"]):
        reasons["training.initial_weights"] = "its training goes on from its own last weights"
    if mine["average_decay"] is None and theirs["average_decay"] is not None:
        reasons["training.average_decay"] = "its checkpoint holds the mean of the weights"
    reasons |= _of_optimizer(config, parent, training)
    reasons |= _of_schedule(config, parent, training)

    for place, reason in reasons.items():
        had = show(value_at(parent, place))
        given = show(value_at(config, place))
        yield f"{place} must be {had} as there, because {reason}, got {given}"


def _of_optimizer(
    config: Mapping[str, Any], parent: Mapping[str, Any], training: Training
) -> dict[str, str]:
    """{place: why it cannot change} of the optimiser."""
    changed = _different(config, parent, _OPTIMIZER)
    target = f"{_OPTIMIZER}.{TARGET}"
    if not changed:
        return {}
    if target in changed:
        return {target: _STATE}

    trial = training.optimizer([nn.Parameter(torch.zeros(2, 2))])
    read_at_each_step = trial.param_groups[0].keys() - set(_OF_FIRST_STEP)
    reasons = {}
    for place in changed:
        name = place.removeprefix(f"{_OPTIMIZER}.")
        if _means_the_same(config, parent, place, default=_default_of(trial, name)):
            continue
        if name not in read_at_each_step:
            reasons[place] = _STATE
        elif name == "lr" and isinstance(trial, torch.optim.Rprop):
            reasons[place] = _STATE  # it has a step size for each weight, which starts there
        elif name == "lr" and not follows_step(training.schedule):
            reasons[place] = f"the schedule has made the rate from it, {_STEP_BY_STEP}"
        elif name == "momentum" and bool(value_at(config, place)) != bool(value_at(parent, place)):
            reasons[place] = _STATE  # without momentum it keeps no mean of its steps
        elif name in ("betas", "momentum") and _cycles(config):
            reasons[place] = "the schedule changes it from step to step"
    return reasons


def _default_of(optimizer: torch.optim.Optimizer, name: str) -> Any:
    """What an argument of the optimiser's class is where it is not given."""
    argument = inspect.signature(type(optimizer)).parameters.get(name)
    return None if argument is None else argument.default


def _means_the_same(
    config: Mapping[str, Any], parent: Mapping[str, Any], place: str, default: Any
) -> bool:
    """Whether two configs differ in nothing but that one of them writes out a default."""
    here, there = (value_at(each, place) for each in (config, parent))
    return (default if here is None else here) == (default if there is None else there)


def _of_schedule(
    config: Mapping[str, Any], parent: Mapping[str, Any], training: Training
) -> dict[str, str]:
    """{place: why it cannot change} of the schedule of the learning rate."""
    changed = _different(config, parent, _SCHEDULE)
    target = f"{_SCHEDULE}.{TARGET}"
    if follows_step(training.schedule):
        return {}
    if target in changed:
        return {target: f"the rate of this one depends on more than the step{_OTHERS}"}
    if isinstance(training.schedule, PlateauSchedule):
        return {}
    return dict.fromkeys(changed, f"the schedule has made the rate with it, {_STEP_BY_STEP}")


def _cycles(config: Mapping[str, Any]) -> bool:
    return str(value_at(config, f"{_SCHEDULE}.{TARGET}")).endswith(_CYCLING)


def _different(config: Mapping[str, Any], parent: Mapping[str, Any], path: str) -> list[str]:
    """The places at or under a path at which two configs differ."""
    places: dict[str, Any] = {}
    for each in (config, parent):
        places.update(leaves(value_at(each, path), path))
    return [place for place in places if value_at(config, place) != value_at(parent, place)]
