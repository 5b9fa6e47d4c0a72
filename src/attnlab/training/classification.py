"""How a classifier is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from attnlab.data.sampler import Batching
from attnlab.training.optimizer import Optimizer
from attnlab.training.schedule import Schedule
from attnlab.training.stopping import check_stopping

VALIDATION = "validation"


@dataclass(frozen=True)
class ClassificationTraining:
    """As `Training`, without what only a decoder needs.

    label_smoothing: the part of each label's probability that the loss spreads over the classes; the nll that is
        reported is never smoothed.
    """

    max_steps: PositiveInt | None
    max_epochs: PositiveInt | None
    batching: Batching
    optimizer: Optimizer
    schedule: Schedule
    label_smoothing: Annotated[float, Field(ge=0, lt=1)]
    gradient_clip: NonNegativeFloat
    validate_every: PositiveInt | None
    monitor: Literal["accuracy", "f1", "nll"]
    patience: PositiveInt | None
    log_every: PositiveInt
    keep_best: PositiveInt
    average_checkpoints: PositiveInt

    def __post_init__(self) -> None:
        check_stopping(self)

    @property
    def monitored_metric(self) -> str:
        return f"{VALIDATION}/{self.monitor}"

    @property
    def monitor_mode(self) -> Literal["min", "max"]:
        return "min" if self.monitor == "nll" else "max"
