"""Results of a finished training, read from its checkpoints: its quality, its best checkpoints, their mean weights.

The callbacks hold these results only in the process that trained, which may be a forked one; the files always do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor

from attnlab.errors import ExperimentError
from attnlab.training.checkpoints import LAST, checkpoint_step
from attnlab.training.speed import SpeedCounters

_PREFIX = "model."  # separates the model's weights from the metrics and other state of the LightningModule


@dataclass(frozen=True)
class Outcome:
    """What a sweep can optimise.

    quality: the best value of the monitored metric; None if there is none.
    training_cpu_seconds: processor time of training, without validations.
    """

    quality: float | None
    higher_is_better: bool
    training_cpu_seconds: float


def outcome_of(checkpoint: ModelCheckpoint) -> Outcome:
    """The outcome of the training to which this callback belonged."""
    states = _callback_states(checkpoint)
    score = states[checkpoint.state_key]["best_model_score"]
    seconds = states[SpeedCounters.__qualname__]["training_cpu"]
    return Outcome(None if score is None else float(score), checkpoint.mode == "max", float(seconds))


def best_checkpoints(checkpoint: ModelCheckpoint, count: int) -> list[Path]:
    """The `count` best checkpoints of a finished training, the best first; fewer if there are fewer.

    Raises ExperimentError if one of them is damaged.
    """
    ranked = [Path(checkpoint.best_model_path)]
    if count > 1:
        known = _callback_states(checkpoint)[checkpoint.state_key]["best_k_models"]
        scores = {ranked[0].with_name(name): float(score) for name, score in known.items()}
        others = sorted(scores, key=scores.__getitem__, reverse=checkpoint.mode == "max")
        ranked = [*ranked, *(path for path in others if path != ranked[0])][:count]
    for path in ranked:
        try:
            checkpoint_step(path)
        except ValueError as damage:
            raise ExperimentError(
                f"the checkpoint {path}, needed for the final model, is damaged: {damage}; train again with rerun=true"
            ) from None
    return ranked


def averaged_weights(checkpoints: Sequence[Path]) -> tuple[dict[str, Tensor], int]:
    """The mean of the checkpoints' weights, and the step of the first, the best one.

    The average of one training's checkpoints is often better than the best of them, and unlike an ensemble costs
    nothing at inference (Junczys-Dowmunt et al. 2016, section 2.3; Sockeye takes the best N too, fairseq the last N).

    Sums are in float64, so that one checkpoint gives its own bits. Tensors of other types than floating point
    (counters) are those of the first.
    """
    first, *others = checkpoints
    weights, step = _load(first)
    sums = {name: value.double() for name, value in weights.items() if value.is_floating_point()}
    for path in others:
        values, _ = _load(path)
        for name in sums:
            sums[name] += values[name]
    means = {name: (total / len(checkpoints)).to(weights[name].dtype) for name, total in sums.items()}
    return weights | means, step


def _load(path: Path) -> tuple[dict[str, Tensor], int]:
    saved: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    weights = {
        name.removeprefix(_PREFIX): value for name, value in saved["state_dict"].items() if name.startswith(_PREFIX)
    }
    return weights, int(saved["global_step"])


def _callback_states(checkpoint: ModelCheckpoint) -> dict[str, Any]:
    """The final state of each callback, by its key."""
    last = Path(checkpoint.best_model_path).parent / LAST
    states: dict[str, Any] = torch.load(last, map_location="cpu", weights_only=True)["callbacks"]
    return states
