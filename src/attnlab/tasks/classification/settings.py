"""Settings of a classifier's training, and the names of its validation's metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attnlab.training.settings import Training

CLASSIFIED = "validation"


@dataclass(frozen=True)
class ClassificationTraining(Training):
    """Training of a classifier; `nll` is that of the labels."""

    monitor: Literal["accuracy", "f1", "nll"]

    @property
    def monitored_metric(self) -> str:
        return f"{CLASSIFIED}/{self.monitor}"
