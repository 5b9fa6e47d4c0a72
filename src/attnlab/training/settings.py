"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from attnlab.data.sampler import Batching
from attnlab.search.search import Search
from attnlab.training.optimizer import Optimizer
from attnlab.training.schedule import Schedule
from attnlab.training.stopping import check_stopping
from attnlab.training.teacher_forcing.teacher_forcing import TeacherForcing

TOKEN_NLL = "validation/teacher_forced/token_nll"
PERPLEXITY = "validation/teacher_forced/perplexity"
FREE_RUNNING = "validation/free_running"


@dataclass(frozen=True)
class Training:
    """Steps are optimiser steps.

    max_steps, max_epochs: whichever comes first ends training; at least one must be given.
    label_smoothing: the part of each label's probability that the loss spreads over the vocabulary (see loss.py);
        what is reported as token_nll and perplexity is never smoothed.
    gradient_clip: the greatest norm of the whole gradient; 0 does not clip.
    validate_every: steps between validations; null validates at the end of each epoch.
    validation_search: how validation decodes for the free-running metrics. It is part of training, for the best
        checkpoint depends on it; the search of the evaluation is a choice of its own.
    monitor: what the best checkpoint, early stopping and plateaus go by.
    patience: validations without anything better before training stops early; null never does.
    log_every: steps between two points of the training curves.
    keep_best: how many of the best checkpoints stay on disk (beside the last one).
    average_checkpoints: of how many of the best checkpoints the model that is kept is the mean; 1 keeps the best.
    """

    max_steps: PositiveInt | None
    max_epochs: PositiveInt | None
    batching: Batching
    optimizer: Optimizer
    schedule: Schedule
    teacher_forcing: TeacherForcing
    label_smoothing: Annotated[float, Field(ge=0, lt=1)]
    gradient_clip: NonNegativeFloat
    validate_every: PositiveInt | None
    validation_search: Search
    monitor: Literal["bleu", "chrf", "exact_match", "token_nll"]
    patience: PositiveInt | None
    log_every: PositiveInt
    keep_best: PositiveInt
    average_checkpoints: PositiveInt

    def __post_init__(self) -> None:
        check_stopping(self)
        if self.validation_search.replace_unknown:
            raise ValueError(
                "validation_search.replace_unknown must be false, for validation knows no source text, got true; "
                "choose search.replace_unknown=true, which the evaluation goes by"
            )

    @property
    def monitored_metric(self) -> str:
        return TOKEN_NLL if self.monitor == "token_nll" else f"{FREE_RUNNING}/{self.monitor}"

    @property
    def monitor_mode(self) -> Literal["min", "max"]:
        return "min" if self.monitor == "token_nll" else "max"
