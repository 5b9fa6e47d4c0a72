"""The results of a finished training, read from its last checkpoint.

The callbacks themselves know nothing of it where training ran in forked processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from attnlab.training.checkpoint_file import LAST
from attnlab.training.speed import SpeedCounters


@dataclass(frozen=True)
class Outcome:
    """What a sweep may ask of a training.

    quality: the best value of what was monitored; None where nothing was.
    training_cpu_seconds: those that went into training, without validations.
    """

    quality: float | None
    higher_is_better: bool
    training_cpu_seconds: float


def outcome_of(checkpoint: ModelCheckpoint) -> Outcome:
    """
    Args:
        checkpoint: the callback that kept the best checkpoints.
    """
    states = callback_states(checkpoint)
    score = states[checkpoint.state_key]["best_model_score"]
    seconds = states[SpeedCounters.__qualname__]["training"]
    return Outcome(None if score is None else float(score), checkpoint.mode == "max", float(seconds))


def callback_states(checkpoint: ModelCheckpoint) -> dict[str, Any]:
    """What each callback knew in the end, by its key."""
    last = Path(checkpoint.best_model_path).parent / LAST
    states: dict[str, Any] = torch.load(last, map_location="cpu", weights_only=True)["callbacks"]
    return states
