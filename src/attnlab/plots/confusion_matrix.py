"""Confusion matrix: rows are true classes, columns predicted ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from attnlab.plots.figure import INK, new_figure
from attnlab.plots.fonts import drawable

_CELL = 0.75  # inches; shrinks where the picture would grow over _LIMIT
_LIMIT = 14.0
_LONGEST_LABEL = 24  # characters
_CLASSES_WITH_NUMBERS = 20


def confusion_matrix(labels: Sequence[str], counts: ArrayLike) -> Figure:
    """Figure of counts (C, C), each row coloured by its shares, so that rare and common classes look alike.

    Raises ValueError where counts do not match the labels.
    """
    matrix = np.asarray(counts, dtype=np.int64)
    classes = len(labels)
    if matrix.shape != (classes, classes):
        raise ValueError(f"counts must be {classes} by {classes} for as many labels, got shape {matrix.shape}")
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    cell = min(_CELL, _LIMIT / max(classes, 1))
    font_size = max(4.0, min(10.0, 72 * cell * 0.5))
    names = [_label(label) for label in labels]
    label_inches = max(map(len, names), default=0) * font_size / 72 * 0.7
    figure = new_figure(max(3.6, classes * cell + label_inches + 1.2), max(2.8, classes * cell + label_inches + 0.9))
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    across = 45 if label_inches > 1.15 * cell else 0
    axes.set_xticks(range(classes), names, fontsize=font_size, rotation=across, ha="right" if across else "center")
    axes.set_yticks(range(classes), names, fontsize=font_size)
    axes.set_xlabel("taken for", fontsize=9, color=INK)
    axes.set_ylabel("is", fontsize=9, color=INK)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color("#8c959f")
    if classes <= _CLASSES_WITH_NUMBERS:
        for row, column in np.ndindex(classes, classes):
            colour = "white" if shares[row, column] > 0.55 else INK
            text = f"{matrix[row, column]:,}\n{100 * shares[row, column]:.0f} %"
            axes.text(column, row, text, ha="center", va="center", fontsize=min(9.0, font_size), color=colour)
    return figure


def _label(label: str) -> str:
    shown = " ".join(drawable(word) for word in label.split()) or "∅"
    return shown if len(shown) <= _LONGEST_LABEL else shown[: _LONGEST_LABEL - 1] + "…"
