"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import NonNegativeFloat, PositiveInt

from attnlab.data.sampler import Batching
from attnlab.search.search import Search
from attnlab.training.optimizer import Optimizer
from attnlab.training.schedule import Schedule
from attnlab.training.teacher_forcing.teacher_forcing import TeacherForcing

TOKEN_NLL = "validation/teacher_forced/token_nll"
PERPLEXITY = "validation/teacher_forced/perplexity"
FREE_RUNNING = "validation/free_running"


@dataclass(frozen=True)
class Training:
    """Steps are optimiser steps.

    max_steps, max_epochs: whichever comes first ends training; at least one must be given.
    gradient_clip: the greatest norm of the whole gradient; 0 does not clip.
    validate_every: steps between validations; null validates at the end of each epoch.
    validation_search: how validation decodes for the free-running metrics. It is part of training, for the best
        checkpoint depends on it; the search of the evaluation is a choice of its own.
    monitor: what the best checkpoint, early stopping and plateaus go by.
    patience: validations without anything better before training stops early; null never does.
    log_every: steps between two points of the training curves.
    keep_best: how many of the best checkpoints stay on disk (beside the last one).
    """

    max_steps: PositiveInt | None
    max_epochs: PositiveInt | None
    batching: Batching
    optimizer: Optimizer
    schedule: Schedule
    teacher_forcing: TeacherForcing
    gradient_clip: NonNegativeFloat
    validate_every: PositiveInt | None
    validation_search: Search
    monitor: Literal["bleu", "chrf", "exact_match", "token_nll"]
    patience: PositiveInt | None
    log_every: PositiveInt
    keep_best: PositiveInt

    def __post_init__(self) -> None:
        if self.max_steps is None and self.max_epochs is None:
            raise ValueError("max_steps and max_epochs are both null; give at least one, or training never ends")

    @property
    def monitored_metric(self) -> str:
        return TOKEN_NLL if self.monitor == "token_nll" else f"{FREE_RUNNING}/{self.monitor}"

    @property
    def monitor_mode(self) -> Literal["min", "max"]:
        return "min" if self.monitor == "token_nll" else "max"

    def total_steps(self, steps_per_epoch: int) -> int:
        """The steps after which training ends at the latest."""
        limits = [self.max_steps] if self.max_steps is not None else []
        if self.max_epochs is not None:
            limits.append(self.max_epochs * steps_per_epoch)
        return min(limits)
