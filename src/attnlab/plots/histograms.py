"""Histograms of sentence lengths and of attention offsets, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from attnlab.plots.figure import COLOURS, INK, new_figure, styled_axes, title_text


def length_histogram(sides: Mapping[str, Mapping[int, int]]) -> Figure:
    """Figure of {side: {length in tokens: sentences}}, as steps over the same axis."""
    figure = new_figure(4.6, 2.6)
    axes = styled_axes(figure, x="tokens, <eos> not counted", y="sentences")
    for number, (label, counts) in enumerate(sides.items()):
        if not counts:
            continue
        shortest = min(counts)
        longest = max(counts)
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


MAX_OFFSET = 4  # larger offsets count at the edge


def offset_histogram(counts: Sequence[Mapping[str, int]]) -> Figure:
    """Figure of the share of aligned target tokens at each offset.

    counts: rows {"offset", "tokens"}, as `AlignmentStatistics.offsets` gives them.
    """
    figure = new_figure(4.6, 2.2)
    axes = styled_axes(figure, x="offset in source tokens", y="share of tokens")
    total = sum(row["tokens"] for row in counts)
    shares = dict.fromkeys(range(-MAX_OFFSET, MAX_OFFSET + 1), 0.0)
    for row in counts:
        offset = max(-MAX_OFFSET, min(MAX_OFFSET, row["offset"]))
        if total > 0:
            shares[offset] += row["tokens"] / total

    # A right link has a colour of its own.
    colours = [COLOURS[0] if offset == 0 else COLOURS[1] for offset in shares]
    axes.bar(list(shares), list(shares.values()), width=0.85, color=colours)
    axes.set_ylim(0, 1)
    axes.set_xticks(list(shares), [_offset_label(offset) for offset in shares])
    return figure


def _offset_label(offset: int) -> str:
    if offset == -MAX_OFFSET:
        return f"≤{offset}"
    if offset == MAX_OFFSET:
        return f"≥{offset}"
    return str(offset)


# Of the confusion matrix, in inches. Cells shrink where the picture would become wider than the
# limit.
_CELL_SIZE = 0.75
_WIDTH_LIMIT = 14.0
_MAX_CLASSES_WITH_NUMBERS = 20


def confusion_matrix(labels: Sequence[str], counts: ArrayLike) -> Figure:
    """Figure of counts (C, C): a row for each true class, a column for each predicted one.

    Each row is coloured by its shares, so that rare and common classes look alike.
    """
    matrix = np.asarray(counts, dtype=np.int64)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    classes = len(labels)
    names = [title_text(label, 24) or "∅" for label in labels]

    cell = min(_CELL_SIZE, _WIDTH_LIMIT / max(classes, 1))
    font_size = max(4.0, min(10.0, 72 * cell * 0.5))
    label_inches = max(map(len, names), default=0) * font_size / 72 * 0.7
    width = max(3.6, classes * cell + label_inches + 1.2)
    height = max(2.8, classes * cell + label_inches + 0.9)
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="equal")

    # Labels wider than a cell would overlap, so they are turned.
    rotation = 45 if label_inches > 1.15 * cell else 0
    axes.set_xticks(
        range(classes),
        names,
        fontsize=font_size,
        rotation=rotation,
        ha="right" if rotation else "center",
    )
    axes.set_yticks(range(classes), names, fontsize=font_size)
    axes.set_xlabel("predicted", fontsize=9, color=INK)
    axes.set_ylabel("true", fontsize=9, color=INK)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color("#8c959f")
    if classes <= _MAX_CLASSES_WITH_NUMBERS:
        _add_counts(axes, matrix, shares, font_size=min(9.0, font_size))
    return figure


def _add_counts(
    axes: Axes, matrix: NDArray[np.int64], shares: NDArray[np.float64], font_size: float
) -> None:
    """The count and the share of each cell, in the cell."""
    for row, column in np.ndindex(matrix.shape):
        count, share = matrix[row, column], shares[row, column]
        shown = f"{count:,}\n{100 * share:.0f} %"
        colour = "white" if share > 0.55 else INK
        axes.text(column, row, shown, ha="center", va="center", fontsize=font_size, color=colour)
