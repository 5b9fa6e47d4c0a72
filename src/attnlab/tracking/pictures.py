"""Attention at each validation, for the same few sentences: pictures, a page and numbers, into the outbox."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.files import atomic_folder
from attnlab.plots.attention import coloured_sentences, heat_map, heat_map_html, sentences_html
from attnlab.plots.figure import save_png
from attnlab.plots.histograms import confusion_matrix
from attnlab.tracking.retention import HEAT_MAPS, keep_heat_maps, retired_heat_maps, step_name
from attnlab.tracking.run_folder import OUTBOX
from attnlab.training.spool import RUN_FOLDER


class Pictures(ABC):
    """The pictures of one validation."""

    @abstractmethod
    def write(self, folder: Path, title: str) -> None:
        """Into a folder that is there."""


@dataclass(frozen=True)
class HeatMaps(Pictures):
    """`sentence_1.png`, ..., one `attention.html`, `attention.npz`."""

    maps: Sequence[AttentionMap]

    def write(self, folder: Path, title: str) -> None:
        for number, attention in enumerate(self.maps, start=1):
            save_png(heat_map(attention), folder / f"sentence_{number}.png")
        (folder / "attention.html").write_text(heat_map_html(self.maps, title), encoding="utf-8")
        save_maps(self.maps, folder / "attention.npz")


@dataclass(frozen=True, eq=False)
class ClassifiedSentences(Pictures):
    """`sentences.png`, `sentences.html`, `attention.npz` of maps of one row each, and `confusion_matrix.png`."""

    maps: Sequence[AttentionMap]
    labels: Sequence[str]
    confusions: NDArray[np.int64]  # (C, C)

    def write(self, folder: Path, title: str) -> None:
        save_png(coloured_sentences(self.maps), folder / "sentences.png")
        (folder / "sentences.html").write_text(sentences_html(self.maps, title), encoding="utf-8")
        save_maps(self.maps, folder / "attention.npz")
        save_png(confusion_matrix(self.labels, self.confusions), folder / "confusion_matrix.png")


PicturesOf = Callable[[pl.LightningModule], Pictures | None]


class PictureCallback(pl.Callback):
    """Draws at the end of each validation, in the first process alone.

    pictures: of the chosen sentences, None for none; called without gradients, in the precision of the training,
        module in evaluation mode.
    point: the experiment's folder.
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
        self._folder = point / RUN_FOLDER
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
                self._folder,
                trainer.global_step,
                None if score is None else float(score),
                self._keep,
                self._mode,
            )
            outbox = self._folder / OUTBOX / HEAT_MAPS
            if step_name(trainer.global_step) in kept:
                with atomic_folder(outbox / step_name(trainer.global_step)) as folder:
                    pictures.write(folder, f"Step {trainer.global_step}")
            for name in retired_heat_maps(self._folder):
                shutil.rmtree(outbox / name, ignore_errors=True)

    def _drawn(self, module: pl.LightningModule) -> Pictures | None:
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad(), module.trainer.precision_plugin.forward_context():
                return self._pictures(module)
        finally:
            module.train(was_training)
