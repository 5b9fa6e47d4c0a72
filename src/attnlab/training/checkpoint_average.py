"""The model that training leaves: its best checkpoint, or the mean of its best few.

Averaging the weights of one training's checkpoints often does better than the best of them, and unlike an ensemble
costs nothing afterwards (Junczys-Dowmunt et al. 2016, section 2.3; Sockeye takes the best N too, fairseq the last N).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor

from attnlab.errors import ExperimentError
from attnlab.training.checkpoint_file import checkpoint_step
from attnlab.training.outcome import callback_states

_PREFIX = "model."  # the model among the module's metrics and other state


def best_checkpoints(checkpoint: ModelCheckpoint, count: int) -> list[Path]:
    """The `count` best checkpoints of a finished training, the best first; fewer where fewer were made.

    Raises ExperimentError where one of them is not what was written.
    """
    ranked = _ranked(checkpoint, count)
    for path in ranked:
        try:
            checkpoint_step(path)
        except ValueError as damage:
            raise ExperimentError(
                f"the checkpoint {path}, of which the model is made, is damaged: {damage}; train again with rerun=true"
            ) from None
    return ranked


def _ranked(checkpoint: ModelCheckpoint, count: int) -> list[Path]:
    best = Path(checkpoint.best_model_path)
    if count == 1:
        return [best]
    known = callback_states(checkpoint)[checkpoint.state_key]["best_k_models"]
    scores = {best.with_name(name): float(score) for name, score in known.items()}
    ranked = sorted(scores, key=scores.__getitem__, reverse=checkpoint.mode == "max")
    return [best, *(path for path in ranked if path != best)][:count]


def averaged_weights(checkpoints: Sequence[Path]) -> tuple[dict[str, Tensor], int]:
    """The mean of the checkpoints' weights, and the step of the first, the best one.

    Sums are in float64, and one checkpoint gives its own bits. What is no floating-point number (a counter) is taken
    from the first.
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
