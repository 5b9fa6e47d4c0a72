"""How many steps a training takes, and how many up to its first validation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from attnlab.data.datamodule import EpochLengths
from attnlab.errors import ExperimentError
from attnlab.training.settings import Training

EPOCHS_COUNTED = 200  # where epochs have different numbers of batches


@dataclass(frozen=True)
class TrainingLength:
    """
    steps: of a training at most.
    validate_every: steps between two validations, or up to the first one where epochs differ.
    validations: those that write a checkpoint.
    rhythm: when they come, in words.
    """

    steps: int
    validate_every: int
    validations: int
    rhythm: str


def length_of(settings: Training, epochs: EpochLengths) -> TrainingLength:
    """How long a training with these settings is."""
    steps_of_first_epoch = settings.steps_per_epoch(epochs.of_epoch(0))
    if not epochs.differ:
        steps = settings.total_steps(steps_of_first_epoch)
    else:
        steps, ends = _epochs_within(settings, epochs.of_epoch)

    validate_every = min(settings.validate_every or steps_of_first_epoch, steps)
    preliminary_steps = settings.preliminary_steps
    if epochs.differ and settings.validate_every is None:
        validations = sum(end > preliminary_steps for end in ends)
        rhythm = "at the end of each epoch"
    else:
        validations = math.ceil(steps / validate_every) - preliminary_steps // validate_every
        rhythm = f"every {validate_every}"
    return TrainingLength(steps, validate_every, validations, rhythm)


def check_length(settings: Training, length: TrainingLength) -> None:
    """Raise ExperimentError where a training is too short for what it asks.

    For the attention to be switched on, or for `average_checkpoints`.
    """
    preliminary_steps = settings.preliminary_steps
    if preliminary_steps >= length.steps:
        raise ExperimentError(
            f"training ends after {length.steps} steps, before the attention is on; choose a "
            "training.attention_schedule.from_step below, or a longer training"
        )
    if settings.average_checkpoints > length.validations:
        counted = f", those up to step {preliminary_steps} not counted" if preliminary_steps else ""
        raise ExperimentError(
            "training.average_checkpoints must be at most the number of validations, each of which "
            f"writes one checkpoint, got {settings.average_checkpoints}, but {length.steps} steps "
            f"are validated {length.validations} time(s), {length.rhythm}{counted}; choose a "
            "smaller training.validate_every or a longer training"
        )


def _epochs_within(settings: Training, batches: Callable[[int], int]) -> tuple[int, list[int]]:
    """(steps of a training at most, the step at which each of its epochs ends).

    To count the batches of an epoch is to plan it. After the first `EPOCHS_COUNTED`, epochs are
    taken to be as long as these on average.

    batches: of the epoch with a number; epochs differ.
    """
    limit = math.inf if settings.max_steps is None else settings.max_steps
    epochs = itertools.count() if settings.max_epochs is None else range(settings.max_epochs)
    ends: list[int] = []
    steps = 0.0
    for epoch in epochs:
        if epoch < EPOCHS_COUNTED:
            steps += settings.steps_per_epoch(batches(epoch))
            mean = steps / (epoch + 1)
        else:
            steps += mean
        ends.append(int(min(round(steps), limit)))
        if steps >= limit:
            break
    return ends[-1], ends
