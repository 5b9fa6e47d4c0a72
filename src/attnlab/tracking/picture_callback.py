"""Attention at each validation, for the same few sentences: pictures, a page and numbers, into the outbox."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytorch_lightning as pl
import torch

from attnlab.files import atomic_folder
from attnlab.tracking.outbox import OUTBOX
from attnlab.tracking.pictures import Pictures
from attnlab.tracking.retention import HEAT_MAPS, keep_heat_maps, retired_heat_maps, step_name

PicturesOf = Callable[[pl.LightningModule], Pictures | None]


class PictureCallback(pl.Callback):
    """Draws at the end of each validation, in the first process alone.

    pictures: of the chosen sentences, None for none; called without gradients, in the precision of the training,
        module in evaluation mode.
    point: the experiment's state folder, with the outbox in it.
    keep: validations whose pictures stay, beside the best one by the metric `monitor`.
    """

    def __init__(
        self,
        pictures: PicturesOf,
        point: Path,
        keep: int,
        monitor: str,
        mode: Literal["min", "max"],
    ) -> None:
        self._pictures = pictures
        self._point = point
        self._keep = keep
        self._monitor = monitor
        self._mode = mode

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        pictures = self._drawn(pl_module)
        if pictures is not None:
            score = trainer.callback_metrics.get(self._monitor)
            kept = keep_heat_maps(
                self._point,
                trainer.global_step,
                None if score is None else float(score),
                self._keep,
                self._mode,
            )
            outbox = self._point / OUTBOX / HEAT_MAPS
            if step_name(trainer.global_step) in kept:
                with atomic_folder(outbox / step_name(trainer.global_step)) as folder:
                    pictures.write(folder, f"Step {trainer.global_step}")
            for name in retired_heat_maps(self._point):
                shutil.rmtree(outbox / name, ignore_errors=True)

    def _drawn(self, module: pl.LightningModule) -> Pictures | None:
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad(), module.trainer.precision_plugin.forward_context():
                return self._pictures(module)
        finally:
            module.train(was_training)
