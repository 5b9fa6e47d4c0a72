"""What a config may say of torch's optimisers and schedulers, beyond their own annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from attnlab.config.part import Part
from attnlab.config.place import SettingTypes
from attnlab.errors import ExperimentError

Decay = Annotated[float, Field(ge=0, lt=1)]

# torch annotates `float | Tensor`, and checks the ranges when it makes the optimiser.
OPTIMIZER_TYPES = SettingTypes(
    {
        "lr": PositiveFloat,
        "betas": tuple[Decay, Decay],
        "eps": PositiveFloat,
        "weight_decay": NonNegativeFloat,
        "momentum": Decay,
        "dampening": Decay,
        "rho": Decay,
        "alpha": Decay,
        "lr_decay": NonNegativeFloat,
        "momentum_decay": NonNegativeFloat,
        "initial_accumulator_value": NonNegativeFloat,
    }
)
SCHEDULER_TYPES = SettingTypes(
    {
        "T_0": PositiveInt,
        "T_max": PositiveInt,
        "T_mult": PositiveInt,
        "total_iters": PositiveInt,
        "total_steps": PositiveInt,
        "step_size": PositiveInt,
        "step_size_up": PositiveInt,
        "milestones": list[NonNegativeInt],
        "gamma": PositiveFloat,
        "pct_start": Annotated[float, Field(ge=0, le=1)],
        "power": NonNegativeFloat,
        "eta_min": NonNegativeFloat,
    }
)
MEANINGS: dict[str, str] = {
    "lr": "the learning rate, before the schedule multiplies it",
    "betas": "the decay of the mean of the gradients, and of the mean of their squares",
    "eps": "added to the denominator",
    "weight_decay": "how much of each weight is taken off at a step, times the learning rate",
    "momentum": "the part of the last step that is added to the next",
    "rho": "the decay of the means of squared gradients and steps",
    "alpha": "the decay of the mean of the squared gradients",
    "initial_accumulator_value": "where the sums of squared gradients start",
    "fused": "one kernel for all weights; null lets torch choose",
    "gamma": "what a step, or a milestone, multiplies the rate by",
    "max_lr": "the highest rate",
    "total_steps": "the steps of the whole schedule, at least those of the training",
    "pct_start": "the part of the steps in which the rate grows",
    "start_factor": "of the rate, at the first step",
    "end_factor": "of the rate, at the last step",
    "total_iters": "the steps from start_factor to end_factor",
}
# Settings that torch does not check against each other.
_INDEPENDENT = {*OPTIMIZER_TYPES.by_name, "amsgrad", "fused", "maximize"}

# Classes of torch that a training here cannot use, and why.
REFUSED: dict[type, str] = {
    torch.optim.LBFGS: "it computes the loss several times a step, and a training does so once",
    torch.optim.Muon: "it optimises matrices alone, and a model has vectors, too",
    torch.optim.SparseAdam: "it optimises sparse gradients alone, and a model's are dense",
    torch.optim.lr_scheduler.ChainedScheduler: "it is made of other schedulers",
    torch.optim.lr_scheduler.SequentialLR: "it is made of other schedulers",
    torch.optim.lr_scheduler.ReduceLROnPlateau: (
        "use training/schedule=plateau, which follows training.monitor"
    ),
}


def check_optimization(
    optimizer: Part[torch.optim.Optimizer], scheduler: Part[LRScheduler] | None
) -> None:
    """Raise ExperimentError, before anything is prepared, where torch refuses the settings.

    scheduler: None where the schedule is one of attnlab's own.
    """
    for part in (optimizer, scheduler):
        if part is not None and part.target in REFUSED:
            raise ExperimentError(
                f"{part.path}._target_: {part.target.__name__} does not fit into attnlab: "
                f"{REFUSED[part.target]}"
            )

    # torch's first optimiser takes a second, in which it imports its compiler.
    is_known = optimizer.target.__module__.startswith("torch.optim")
    if is_known and scheduler is None and optimizer.values.keys() <= _INDEPENDENT:
        return
    made = optimizer(_trial_parameters())
    if scheduler is not None:
        scheduler(made)


def _trial_parameters() -> Sequence[nn.Parameter]:
    """A matrix and a vector, as every model has them."""
    return [nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(2))]


def scheduler_entry(made: LRScheduler, path: str, total_steps: int) -> dict[str, Any]:
    """The scheduler entry of Lightning's `configure_optimizers`: a step for each optimiser step.

    Raises ExperimentError where the schedule ends before the training, which torch would say only
    then.
    """
    length = getattr(made, "total_steps", total_steps)
    if length < total_steps:
        raise ExperimentError(
            f"{path}.total_steps must be at least the {total_steps} steps of the training, got "
            f"{length}"
        )
    return {"scheduler": made, "interval": "step"}
