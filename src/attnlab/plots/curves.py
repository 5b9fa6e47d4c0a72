"""Figures of learning curves, and of quality by source length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from attnlab.plots.figure import COLOURS, GRID, INK, new_figure, styled_axes

Points = Sequence[tuple[int, float]]
"""(step, value) of a curve."""

_PANEL_WIDTH, _PANEL_HEIGHT = 4.6, 2.9  # inches
_PERPLEXITY = "perplexity (validation, reference fed)"
_CLASSES = "accuracy and F1 (validation)"
_VALIDATION = "validation/"
# {title of a panel: {name in the history: label}}
_PANELS = {
    "loss (nats a token)": {
        "train/token_nll": "training batches",
        "validation/teacher_forced/token_nll": "validation, reference fed",
    },
    _PERPLEXITY: {"validation/teacher_forced/perplexity": "perplexity"},
    "BLEU and chrF (validation, free-running)": {
        "validation/free_running/bleu": "BLEU",
        "validation/free_running/chrf": "chrF",
    },
    "exact match (validation, free-running)": {
        "validation/free_running/exact_match": "exact match"
    },
    "loss (nats a sentence)": {"train/nll": "training batches", "validation/nll": "validation"},
    _CLASSES: {
        "validation/accuracy": "accuracy",
        "validation/f1": "F1, mean over the classes",
    },
}


def curve_panels(history: Mapping[str, Points]) -> dict[str, Figure]:
    """{title: figure} of training loss and validation metrics, of those that the history has.

    history: {name: [(step, value), ...]}, steps ascending, for example `train/token_nll`.
    """
    panels = {}
    for title, curves in _panels_with_points(history).items():
        figure = new_figure(_PANEL_WIDTH, _PANEL_HEIGHT)
        _draw_panel(styled_axes(figure, x="step"), title, curves)
        panels[title] = figure
    return panels


def _draw_panel(axes: Axes, title: str, curves: Mapping[str, Points]) -> None:
    for (label, points), colour in zip(curves.items(), COLOURS, strict=False):
        _draw_curve(axes, label, points, colour)
    values = [value for points in curves.values() for _, value in points]
    _scale_heights(axes, values, may_be_logarithmic=title == _PERPLEXITY)
    if len(curves) > 1:
        axes.legend(fontsize=8, frameon=False)


def _panels_with_points(history: Mapping[str, Points]) -> dict[str, dict[str, Points]]:
    """{title: {label: points}} of the panels and curves for which there is something to draw.

    A validation metric that no panel knows, as a task of the user's own logs it, has a panel of its
    own.
    """
    panels = {}
    known = set()
    for title, labels in _PANELS.items():
        known |= set(labels)
        curves = {label: history[name] for name, label in labels.items() if history.get(name)}
        if not curves:
            continue
        if title == _CLASSES and len(curves) == 1:
            (label,) = curves
            title = f"{label} (validation)"
        panels[title] = curves

    for name, points in history.items():
        if name.startswith(_VALIDATION) and name not in known and points:
            label = name.removeprefix(_VALIDATION).replace("_", " ")
            panels[f"{label} (validation)"] = {label: points}
    return panels


def _draw_curve(axes: Axes, label: str, points: Points, colour: str) -> None:
    steps, values = zip(*points, strict=True)
    # Short curves get markers: a curve of one point would be invisible.
    marker = "o" if len(points) <= 30 else None
    axes.plot(steps, values, label=label, color=colour, linewidth=1.4, marker=marker, markersize=3)


def _scale_heights(axes: Axes, values: Sequence[float], may_be_logarithmic: bool) -> None:
    lowest = min(values)
    highest = max(values)
    if may_be_logarithmic and lowest > 0 and highest > 20 * lowest:
        axes.set_yscale("log")  # the first validation would flatten the rest
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        # Powers of ten would be set as formulas.
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif lowest >= 0:
        axes.set_ylim(bottom=0)


def length_curve(by_length: Sequence[Mapping[str, Any]]) -> Figure:
    """Figure of BLEU and exact match by source length, with the number of sentences as bars.

    by_length: rows {"from", "to", "sentences", "bleu" (0..100), "exact_match" (0..1)}, one point
        each. The curve has a gap where BLEU is None.
    """
    figure = new_figure(4.6, 3.0)
    axes = styled_axes(figure, x="source tokens, <eos> not counted")
    positions = range(len(by_length))
    sentences = [row["sentences"] for row in by_length]
    counts = axes.twinx()
    counts.bar(positions, sentences, color=GRID, width=0.9, zorder=0)
    counts.yaxis.set_major_locator(MaxNLocator(integer=True))
    counts.set_ylabel("sentences (bars)", fontsize=9, color=INK)
    counts.tick_params(colors=INK, labelsize=8)
    counts.spines[["top"]].set_visible(False)
    # The curves belong above the bars, though the bars' axes came second.
    axes.set_zorder(counts.get_zorder() + 1)
    axes.patch.set_visible(False)

    exact_matches = [100 * row["exact_match"] for row in by_length]
    curves = {"BLEU": [row["bleu"] for row in by_length], "exact match (%)": exact_matches}
    for (label, values), colour in zip(curves.items(), COLOURS, strict=False):
        heights = np.array(values, dtype=np.float64)  # NaN for None
        if np.isnan(heights).all():
            continue
        axes.plot(positions, heights, label=label, color=colour, marker="o", markersize=4)
    axes.set_ylim(0, 105)
    ranges = [range_text(int(row["from"]), int(row["to"])) for row in by_length]
    axes.set_xticks(positions, ranges)
    axes.legend(fontsize=8, loc="lower left", framealpha=0.8, edgecolor=GRID)
    return figure


def ranges_without(measure: str, by_length: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ranges of source lengths, as labels, where a measure of the rows is None.

    Ranges that follow each other are one.
    """
    without = {(row["from"], row["to"]) for row in by_length if _lacks(row, measure)}
    merged: list[tuple[int, int]] = []
    for low, high in sorted(without):
        if merged and merged[-1][1] == low - 1:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return [range_text(*ends) for ends in merged]


def _lacks(row: Mapping[str, Any], measure: str) -> bool:
    return measure in row and row[measure] is None


def range_text(low: int, high: int) -> str:
    """A range of lengths as a label: `7`, or `7–9`."""
    return str(low) if low == high else f"{low}–{high}"
