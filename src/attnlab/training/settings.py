"""Settings of a training that every task has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from attnlab.config.part import Part
from attnlab.data.sampler import Batching
from attnlab.training.attention_losses.attention_loss import AttentionLoss
from attnlab.training.optimisation import Schedule
from attnlab.training.torch_optim import OPTIMIZER_TYPES, SCHEDULER_TYPES, check_optimization

LOGGED_STEPS = ("train/gradient_norm", "train/learning_rate")  # of every task


@dataclass(frozen=True)
class Training(ABC):
    """Settings of every training; steps are optimiser steps.

    max_steps, max_epochs: training ends at whichever comes first; they may not both be None.
    max_minutes: the clock time after which it ends, validations included; a repetition may then end
        at another step.
    accumulate: parts of a batch that are computed one after the other. The gradient stays that of
        the whole batch; it takes less memory.
    initial_weights: a model folder whose weights the training starts with; None draws them.
    continue_from: the identity of a finished experiment, whose training goes on to a later
        `max_steps` or `max_epochs` with the settings given here; None starts at the first step.
    optimizer: a class of torch.optim, or one that derives from its Optimizer; it is given the
        model's parameters.
    schedule: of the learning rate: one of attnlab's own, or a class of torch.optim.lr_scheduler,
        which takes a step for each step of the optimiser.
    limit_batches: batches of an epoch, and of a validation, for a quick look; None takes all.
    label_smoothing: the part of each label's probability that the loss spreads over the vocabulary
        or the classes; the reported NLL and perplexity are never smoothed.
    gradient_clip: the greatest norm of the whole gradient; 0 does not clip.
    monitor: the validation metric that the best checkpoint, early stopping and a plateau depend on.
    validate_every: steps between validations; None validates at the end of each epoch.
    patience: validations without an improvement before training stops early; None never stops
        early.
    log_every: steps between two points of the training curves.
    keep_best: how many of the best checkpoints stay on disk (in addition to the last one).
    average_checkpoints: how many of the best checkpoints are averaged into the final model; 1 takes
        the best.
    average_decay: of an exponential moving average of the weights, what step n keeps of it, at most
        (1 + n) / (10 + n); validation, checkpoints and the final model then have the average; None
        averages nothing.
    frozen: parts of the model whose weights stay as they begin, by their names in it: `encoder`,
        `decoder.attention.score`.
    attention_loss: a loss on the attention weights beside the negative log-likelihood; None for
        none.
    """

    max_steps: PositiveInt | None
    max_epochs: PositiveInt | None
    max_minutes: PositiveFloat | None
    accumulate: PositiveInt
    initial_weights: Annotated[str, Field(min_length=1)] | None
    continue_from: Annotated[str, Field(min_length=1)] | None
    limit_batches: PositiveInt | None
    batching: Batching
    optimizer: Annotated[Part[Optimizer], OPTIMIZER_TYPES]
    schedule: Schedule | Annotated[Part[LRScheduler], SCHEDULER_TYPES]
    label_smoothing: Annotated[float, Field(ge=0, lt=1)]
    gradient_clip: NonNegativeFloat
    validate_every: PositiveInt | None
    patience: PositiveInt | None
    log_every: PositiveInt
    keep_best: PositiveInt
    average_checkpoints: PositiveInt
    average_decay: Annotated[float, Field(gt=0, lt=1)] | None
    frozen: list[str] = field(default_factory=list, kw_only=True)
    attention_loss: AttentionLoss | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        scheduler = None if isinstance(self.schedule, Schedule) else self.schedule
        check_optimization(self.optimizer, scheduler)
        if self.max_steps is None and self.max_epochs is None:
            raise ValueError(
                "max_steps and max_epochs are both null; give at least one, or training never ends"
            )
        if self.average_checkpoints > self.keep_best:
            raise ValueError(
                "average_checkpoints must be at most keep_best, the number of checkpoints that "
                f"stay on disk, got {self.average_checkpoints} and keep_best {self.keep_best}; "
                f"choose training.keep_best={self.average_checkpoints} or average fewer"
            )

    @property
    @abstractmethod
    def monitored_metric(self) -> str:
        """The logged name of the metric for the best checkpoint, early stopping and plateaus."""

    @property
    def preliminary_steps(self) -> int:
        """Steps at the start that train another model than the one that training is to end with.

        Validations up to there choose no checkpoint, end no training, and lower no learning rate.
        Parts of the model may get no gradient in them.
        """
        return 0

    @property
    def monitor_mode(self) -> Literal["min", "max"]:
        """Whether that metric is better when it is lower, as an NLL, or higher."""
        return "min" if self.monitored_metric.endswith("nll") else "max"

    def steps_per_epoch(self, batches: int) -> int:
        """The optimiser steps of an epoch whose loader yields so many batches.

        Each part of a batch counts as one.
        """
        return min(batches // self.accumulate, self.limit_batches or batches)

    def total_steps(self, steps_per_epoch: int) -> int:
        """The steps after which training ends at the latest."""
        of_epochs = None if self.max_epochs is None else self.max_epochs * steps_per_epoch
        return min(steps for steps in (self.max_steps, of_epochs) if steps is not None)
