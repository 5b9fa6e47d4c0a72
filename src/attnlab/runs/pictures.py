"""Attention at each validation, for the same few sentences.

The outbox receives pictures, a page and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytorch_lightning as pl
from numpy.typing import NDArray

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.files import atomic_folder
from attnlab.plots.attention import coloured_sentences, heat_map, heat_map_html, sentences_html
from attnlab.plots.figure import save_png
from attnlab.plots.histograms import confusion_matrix
from attnlab.runs.run_folder import HEAT_MAPS, OUTBOX
from attnlab.training.spool import RUN_FOLDER

Pictures = Callable[[Path, str], None]
"""Writes the pictures of one validation, under a title, into a folder that is there."""
PicturesOf = Callable[[pl.LightningModule], Pictures | None]


def write_heat_maps(maps: Sequence[AttentionMap], folder: Path, title: str) -> None:
    """Write `sentence_1.png`, ..., one `attention.html`, `attention.npz`."""
    for number, attention in enumerate(maps, start=1):
        save_png(heat_map(attention), folder / f"sentence_{number}.png")
    (folder / "attention.html").write_text(heat_map_html(maps, title), encoding="utf-8")
    save_maps(maps, folder / "attention.npz")


def write_sentences(
    maps: Sequence[AttentionMap],
    labels: Sequence[str],
    confusions: NDArray[np.int64],
    folder: Path,
    title: str,
) -> None:
    """Write the attention maps of sentences, and the confusion matrix.

    Writes `sentences.png`, `sentences.html` and `attention.npz` of maps of one row each, and
    `confusion_matrix.png`.

    confusions: (C, C).
    """
    save_png(coloured_sentences(maps), folder / "sentences.png")
    (folder / "sentences.html").write_text(sentences_html(maps, title), encoding="utf-8")
    save_maps(maps, folder / "attention.npz")
    save_png(confusion_matrix(labels, confusions), folder / "confusion_matrix.png")


class PictureCallback(pl.Callback):
    """Draws at the end of each validation, in the first process alone.

    pictures: of the chosen sentences, None for none; called in the precision of the training,
        without gradients and with the module in evaluation mode, as Lightning has it until a
        validation is over.
    point: the experiment's folder.
    """

    def __init__(self, pictures: PicturesOf, point: Path) -> None:
        self._pictures, self._folder = pictures, point / RUN_FOLDER

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        with trainer.precision_plugin.forward_context():
            pictures = self._pictures(pl_module)
        if pictures is None:
            return
        with atomic_folder(
            self._folder / OUTBOX / HEAT_MAPS / step_name(trainer.global_step)
        ) as folder:
            pictures(folder, f"Step {trainer.global_step}")


def step_name(step: int) -> str:
    """The folder of one validation; the zeros keep the order of the names that of the steps."""
    return f"step_{step:06d}"
