"""How many steps a training takes, and how many up to its first validation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from attnlab.data.datamodule import EpochLengths
from attnlab.errors import ExperimentError
from attnlab.training.settings import Training

EPOCHS_COUNTED = 200  # where epochs have different numbers of batches


def length_of(settings: Training, batches: EpochLengths) -> tuple[int, int]:
    """(steps of a training at most, steps up to its first validation).

    Between two validations are as many steps, or those of an epoch where epochs differ.

    Raises ExperimentError if it is too short for `average_checkpoints`, or for the attention to be
    switched on.
    """
    first_epoch = settings.steps_per_epoch(batches(0) if callable(batches) else batches)
    steps = settings.total_steps(first_epoch)
    if callable(batches):
        steps, ends = _epochs_within(settings, batches)
    validate_every = min(settings.validate_every or first_epoch, steps)
    preliminary_steps = settings.preliminary_steps
    if preliminary_steps >= steps:
        raise ExperimentError(
            f"training ends after {steps} steps, before the attention is on; choose a "
            "training.attention_schedule.from_step below, or a longer training"
        )
    validations = math.ceil(steps / validate_every) - preliminary_steps // validate_every
    rhythm = f"every {validate_every}"
    if callable(batches) and settings.validate_every is None:
        validations = sum(end > preliminary_steps for end in ends)
        rhythm = "at the end of each epoch"
    if settings.average_checkpoints > validations:
        counted = f", those up to step {preliminary_steps} not counted" if preliminary_steps else ""
        raise ExperimentError(
            "training.average_checkpoints must be at most the number of validations, each of which "
            f"writes one checkpoint, got {settings.average_checkpoints}, but {steps} steps are "
            f"validated {validations} time(s), {rhythm}{counted}; choose a smaller "
            "training.validate_every or a longer training"
        )
    return steps, validate_every


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
