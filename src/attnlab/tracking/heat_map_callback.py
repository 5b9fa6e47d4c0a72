"""Attention at each validation, for the same few sentences: pictures, a page and numbers, into the outbox."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytorch_lightning as pl
import torch

from attnlab.composition.atomic import atomic_folder
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.plots.figure import save_png
from attnlab.plots.heat_map import heat_map
from attnlab.plots.heat_map_html import heat_map_html
from attnlab.tracking.delivery import OUTBOX
from attnlab.tracking.retention import HEAT_MAPS, keep_heat_maps, step_name

MapsOf = Callable[[pl.LightningModule], Sequence[AttentionMap]]


class HeatMapCallback(pl.Callback):
    """Draws at the end of each validation, in the first process alone, and then has things delivered.

    maps: gives the attention of the chosen sentences; called without gradients, module in evaluation mode.
    point: the experiment's state folder, with the outbox in it.
    keep: validations whose heat maps stay, beside the best one by the metric `monitor`.
    deliver: hands over metrics and outbox; in a forked training process it does nothing, and the main process
        delivers after the training.
    """

    def __init__(
        self,
        maps: MapsOf,
        point: Path,
        keep: int,
        monitor: str,
        mode: Literal["min", "max"],
        deliver: Callable[[], None],
    ) -> None:
        self._maps = maps
        self._point = point
        self._keep = keep
        self._monitor = monitor
        self._mode = mode
        self._deliver = deliver

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        maps = self._drawn(pl_module)
        if maps:
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
                write_heat_maps(maps, outbox / step_name(trainer.global_step), f"Step {trainer.global_step}")
            for path in outbox.iterdir() if outbox.exists() else ():
                if path.name not in kept:
                    shutil.rmtree(path)
        self._deliver()

    def _drawn(self, module: pl.LightningModule) -> Sequence[AttentionMap]:
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                return self._maps(module)
        finally:
            module.train(was_training)


def write_heat_maps(maps: Sequence[AttentionMap], folder: Path, title: str) -> None:
    """`sentence_1.png`, ..., one `attention.html` `attention.npz`; there whole or not at all."""
    with atomic_folder(folder) as temporary:
        for number, attention in enumerate(maps, start=1):
            save_png(heat_map(attention), temporary / f"sentence_{number}.png")
        (temporary / "attention.html").write_text(heat_map_html(maps, title), encoding="utf-8")
        save_maps(maps, temporary / "attention.npz")
