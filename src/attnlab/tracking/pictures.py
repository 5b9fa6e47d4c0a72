"""What is drawn at a validation, and the files that it becomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.plots.confusion_matrix import confusion_matrix
from attnlab.plots.figure import save_png
from attnlab.plots.heat_map import heat_map, heat_map_html
from attnlab.plots.sentences import coloured_sentences, sentences_html


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
