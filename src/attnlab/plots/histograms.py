"""Histograms of sentence lengths and of attention offsets, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attnlab.plots.figure import COLOURS, INK, new_figure, styled_axes, title_text


def length_histogram(sides: Mapping[str, Mapping[int, int]]) -> Figure:
    """Figure of {side: {length in tokens: sentences}}, as steps over the same axis."""
    figure = new_figure(7.2, 2.8)
    axes = styled_axes(figure, x="tokens, <eos> not counted", y="sentences")
    for number, (label, counts) in enumerate(sides.items()):
        if not counts:
            continue
        shortest, longest = min(counts), max(counts)
        heights = [counts.get(length, 0) for length in range(shortest, longest + 1)]
        edges = np.arange(shortest, longest + 2) - 0.5  # a bar is centred on its length
        axes.stairs(heights, edges, fill=True, color=COLOURS[number], alpha=0.35)
        axes.stairs(heights, edges, color=COLOURS[number], linewidth=1.2, label=label)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if any(sides.values()):
        axes.legend(fontsize=8, frameon=False)
    return figure


FARTHEST = 4  # larger offsets count at the edge


def offset_histogram(counts: Sequence[Mapping[str, int]]) -> Figure:
    """Figure of the share of aligned target tokens at each offset.

    counts: rows {"offset", "tokens"}, as `AlignmentStatistics.offsets` gives them.
    """
    figure = new_figure(7.2, 2.2)
    axes = styled_axes(figure, x="offset in source tokens", y="share of tokens")
    total = sum(row["tokens"] for row in counts)
    shares = dict.fromkeys(range(-FARTHEST, FARTHEST + 1), 0.0)
    for row in counts:
        shares[max(-FARTHEST, min(FARTHEST, row["offset"]))] += (
            row["tokens"] / total if total else 0.0
        )
    axes.bar(
        list(shares),
        list(shares.values()),
        width=0.85,
        color=[COLOURS[offset != 0] for offset in shares],
    )
    axes.set_ylim(0, 1)
    axes.set_xticks(list(shares), [_tick(offset) for offset in shares])
    return figure


def _tick(offset: int) -> str:
    return (
        f"≤{offset}" if offset == -FARTHEST else f"≥{offset}" if offset == FARTHEST else str(offset)
    )


_CELL = 0.75  # inches; shrinks where the picture would grow over _WIDEST
_WIDEST = 14.0
_CLASSES_WITH_NUMBERS = 20


def confusion_matrix(labels: Sequence[str], counts: ArrayLike) -> Figure:
    """Figure of counts (C, C), each row coloured by its shares, so that rare and common classes
    look alike.
    """
    matrix = np.asarray(counts, dtype=np.int64)
    classes = len(labels)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    cell = min(_CELL, _WIDEST / max(classes, 1))
    font_size = max(4.0, min(10.0, 72 * cell * 0.5))
    names = [title_text(label, 24) or "∅" for label in labels]
    label_inches = max(map(len, names), default=0) * font_size / 72 * 0.7
    figure = new_figure(
        max(3.6, classes * cell + label_inches + 1.2), max(2.8, classes * cell + label_inches + 0.9)
    )
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="equal")
    across = 45 if label_inches > 1.15 * cell else 0
    axes.set_xticks(
        range(classes),
        names,
        fontsize=font_size,
        rotation=across,
        ha="right" if across else "center",
    )
    axes.set_yticks(range(classes), names, fontsize=font_size)
    axes.set_xlabel("taken for", fontsize=9, color=INK)
    axes.set_ylabel("is", fontsize=9, color=INK)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color("#8c959f")
    if classes <= _CLASSES_WITH_NUMBERS:
        for row, column in np.ndindex(classes, classes):
            colour = "white" if shares[row, column] > 0.55 else INK
            text = f"{matrix[row, column]:,}\n{100 * shares[row, column]:.0f} %"
            axes.text(
                column,
                row,
                text,
                ha="center",
                va="center",
                fontsize=min(9.0, font_size),
                color=colour,
            )
    return figure
