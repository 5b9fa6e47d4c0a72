"""Attention at each validation, for the same few sentences.

The outbox receives pictures, a page and numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytorch_lightning as pl
from numpy.typing import NDArray

from attnlab.config.part import failure_of
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.files import atomic_folder
from attnlab.plots.attention import coloured_sentences, heat_map, heat_map_html, sentences_html
from attnlab.plots.figure import save_png
from attnlab.plots.histograms import confusion_matrix
from attnlab.plots.picture import Picture
from attnlab.runs.run_folder import HEAT_MAPS, OUTBOX
from attnlab.training.spool import RUN_FOLDER


@dataclass(frozen=True)
class Pictures:
    """What a validation draws.

    maps: of the same few sentences each time.
    write: writes the pictures, under a title, into a folder that is there.
    """

    maps: Sequence[AttentionMap]
    write: Callable[[Path, str], None]


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
    own: pictures that the config adds, by name.
    """

    def __init__(self, pictures: PicturesOf, point: Path, own: Mapping[str, Picture]) -> None:
        self._pictures = pictures
        self._folder = point / RUN_FOLDER
        self._own = own

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        with trainer.precision_plugin.forward_context():
            pictures = self._pictures(pl_module)
        if pictures is None:
            return
        into = self._folder / OUTBOX / HEAT_MAPS / step_name(trainer.global_step)
        with atomic_folder(into) as folder:
            pictures.write(folder, f"Step {trainer.global_step}")
            for name, picture in self._own.items():
                _write_own(name, picture, pictures.maps, folder / f"{name}.png")


def _write_own(name: str, picture: Picture, maps: Sequence[AttentionMap], path: Path) -> None:
    """Draw a picture of the user's; where its code fails, say so and go on with the training."""
    try:
        save_png(picture.draw(maps), path)
    except Exception as error:
        reason = failure_of(error, type(picture))
        print(f"warning: pictures.{name} could not be drawn: {reason}", file=sys.stderr)


def step_name(step: int) -> str:
    """The folder of one validation; the zeros keep the order of the names that of the steps."""
    return f"step_{step:06d}"
