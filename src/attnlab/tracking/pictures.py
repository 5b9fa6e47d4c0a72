"""Attention at each validation, for the same few sentences: pictures, a page and numbers, into the outbox.

Those of the newest validations and of the best one stay. `heat_maps.json` in the run folder holds these validations'
scores, and the folder `retired` a name for each validation whose pictures are to be deleted from the run's artifacts.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytorch_lightning as pl
from numpy.typing import NDArray

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.files import atomic_folder, write_json
from attnlab.plots.attention import coloured_sentences, heat_map, heat_map_html, sentences_html
from attnlab.plots.figure import save_png
from attnlab.plots.histograms import confusion_matrix
from attnlab.tracking.run_folder import HEAT_MAPS, OUTBOX, RETIRED
from attnlab.training.spool import RUN_FOLDER

SCORES = "heat_maps.json"


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
    maps: Sequence[AttentionMap], labels: Sequence[str], confusions: NDArray[np.int64], folder: Path, title: str
) -> None:
    """Write `sentences.png`, `sentences.html`, `attention.npz` of maps of one row each, and `confusion_matrix.png`.

    confusions: (C, C).
    """
    save_png(coloured_sentences(maps), folder / "sentences.png")
    (folder / "sentences.html").write_text(sentences_html(maps, title), encoding="utf-8")
    save_maps(maps, folder / "attention.npz")
    save_png(confusion_matrix(labels, confusions), folder / "confusion_matrix.png")


class PictureCallback(pl.Callback):
    """Draws at the end of each validation, in the first process alone.

    pictures: of the chosen sentences, None for none; called in the precision of the training, without gradients and
        with the module in evaluation mode, as Lightning has it until a validation is over.
    point: the experiment's folder.
    keep: validations whose pictures stay, beside the best one by the metric `monitor`.
    """

    def __init__(self, pictures: PicturesOf, point: Path, keep: int, monitor: str, mode: Literal["min", "max"]) -> None:
        self._pictures, self._folder = pictures, point / RUN_FOLDER
        self._keep, self._monitor, self._mode = keep, monitor, mode

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        with trainer.precision_plugin.forward_context():
            pictures = self._pictures(pl_module)
        if pictures is None:
            return
        score = trainer.callback_metrics.get(self._monitor)
        step = trainer.global_step
        kept = retain(self._folder, step, None if score is None else float(score), self._keep, self._mode)
        if step_name(step) in kept:
            with atomic_folder(self._folder / OUTBOX / HEAT_MAPS / step_name(step)) as folder:
                pictures(folder, f"Step {step}")


def step_name(step: int) -> str:
    """The folder of one validation; the zeros keep the order of the names that of the steps."""
    return f"step_{step:06d}"


def retain(folder: Path, step: int, score: float | None, newest: int, mode: Literal["min", "max"]) -> list[str]:
    """Note a validation in a run folder, retire the pictures of those that do not stay, and return those that do.

    score: of what the best checkpoint goes by; None or not-a-number is never the best.
    """
    path = folder / SCORES
    scores: dict[str, float | None] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    scores[step_name(step)] = score if score is not None and math.isfinite(score) else None
    by_step = sorted(scores, key=lambda name: int(name.rpartition("_")[2]))
    stay = set(by_step[-newest:] if newest else [])
    known = {name: value for name in by_step if (value := scores[name]) is not None}
    if known:
        stay.add((max if mode == "max" else min)(known, key=known.__getitem__))  # of equals the first
    (folder / RETIRED).mkdir(parents=True, exist_ok=True)
    (folder / RETIRED / step_name(step)).unlink(missing_ok=True)  # of before a resume
    for name in scores.keys() - stay:
        (folder / RETIRED / name).touch()
        shutil.rmtree(folder / OUTBOX / HEAT_MAPS / name, ignore_errors=True)
    write_json(path, {name: scores[name] for name in stay})
    return sorted(stay)
