"""Attention before the training and at each validation, for the same few sentences.

The outbox receives pictures, a page and numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray

from attnlab.config.part import failure_of
from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.formed_attention import formed_maps
from attnlab.files import atomic_folder
from attnlab.plots.figure import save_png
from attnlab.plots.heat_map_figure import heat_map_figure
from attnlab.plots.heat_map_html import heat_map_page
from attnlab.plots.histograms import confusion_matrix
from attnlab.plots.picture import Picture
from attnlab.plots.sentences import coloured_sentences, sentences_html
from attnlab.runs.run_folder import HEAT_MAPS, OUTBOX, step_name
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
        save_png(heat_map_figure(attention), folder / f"sentence_{number}.png")
    (folder / "attention.html").write_text(heat_map_page(maps, title), encoding="utf-8")
    save_maps(maps, folder / "attention.npz")


def write_sentences(
    maps: Sequence[AttentionMap],
    labels: Sequence[str],
    confusions: NDArray[np.int64] | None,
    folder: Path,
    title: str,
) -> None:
    """Write the attention maps of sentences, and the confusion matrix.

    Writes `sentences.png`, `sentences.html` and `attention.npz` of maps of one row each, and
    `confusion_matrix.png`.

    confusions: (C, C); None before the first validation, and then there is no picture of them.
    """
    save_png(coloured_sentences(maps), folder / "sentences.png")
    (folder / "sentences.html").write_text(sentences_html(maps, title), encoding="utf-8")
    save_maps(maps, folder / "attention.npz")
    if confusions is not None:
        save_png(confusion_matrix(labels, confusions), folder / "confusion_matrix.png")


class PictureCallback(pl.Callback):
    """Draws before the first step and at the end of each validation, in the first process alone.

    pictures: of the chosen sentences, None for none; called in the precision of the training,
        without gradients and with the module in evaluation mode.
    point: the experiment's folder.
    own: pictures that the config adds, by name.
    draws: whether the outbox receives something; the maps are kept in any case.
    """

    def __init__(
        self, pictures: PicturesOf, point: Path, own: Mapping[str, Picture], draws: bool = True
    ) -> None:
        self._pictures = pictures
        self._point = point
        self._folder = point / RUN_FOLDER
        self._own = own
        self._draws = draws

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Draw the attention of the untrained model, where MLflow's slider over the steps begins.

        Training goes on as if nothing had been drawn.
        """
        if trainer.global_step > 0 or not trainer.is_global_zero:
            return
        # A search may sample.
        gpus = [pl_module.device] if pl_module.device.type == "cuda" else []
        with _in_evaluation_mode(pl_module), torch.no_grad(), torch.random.fork_rng(gpus):
            self._draw(trainer, pl_module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # Until a validation is over, Lightning has the module in evaluation mode.
        if not trainer.sanity_checking and trainer.is_global_zero:
            self._draw(trainer, pl_module)

    def _draw(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        with trainer.precision_plugin.forward_context():
            pictures = self._pictures(module)
        if pictures is None:
            return
        step = step_name(trainer.global_step)
        # The report shows how the attention formed; the outbox is empty after an upload.
        save_maps(pictures.maps, formed_maps(self._point / "training", step))
        if not self._draws:
            return
        into = self._folder / OUTBOX / HEAT_MAPS / step
        with atomic_folder(into) as folder:
            pictures.write(folder, f"Step {trainer.global_step}")
            for name, picture in self._own.items():
                _write_own(name, picture, pictures.maps, folder / f"{name}.png")


@contextmanager
def _in_evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Each module in evaluation mode, and in its own mode again afterwards."""
    modes = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for each, mode in modes:
            each.training = mode


def _write_own(name: str, picture: Picture, maps: Sequence[AttentionMap], path: Path) -> None:
    """Draw a picture of the user's; where its code fails, say so and go on with the training."""
    try:
        save_png(picture.draw(maps), path)
    except Exception as error:
        reason = failure_of(error, type(picture))
        print(f"warning: pictures.{name} could not be drawn: {reason}", file=sys.stderr)
