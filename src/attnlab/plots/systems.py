"""Figures of compared systems over several seeds: curves, and intervals of their quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from attnlab.plots.figure import (
    COLOURS,
    INK,
    MAX_NAME_LENGTH,
    new_figure,
    shared_legend,
    styled_axes,
    title_text,
)


@dataclass(frozen=True, eq=False)
class SeededCurve:
    """One value along an axis, measured once for each seed.

    label: in the legend.
    x: P places on the axis.
    values: (seeds, P); NaN where nothing was measured.
    colour: an index into COLOURS, which repeat after the last one.
    dashed: distinguishes curves of one colour.
    """

    label: str
    x: Sequence[float]
    values: ArrayLike
    colour: int
    dashed: bool = False


def _draw(axes: Axes, curve: SeededCurve) -> None:
    every_value = np.asarray(curve.values, dtype=np.float64)  # (seeds, P)
    measured = ~np.isnan(every_value).all(axis=0)  # (P,)
    x = np.asarray(curve.x)[measured]
    values = every_value[:, measured]

    colour = COLOURS[curve.colour % len(COLOURS)]
    line = "--" if curve.dashed else "-"
    # Short curves get markers: a curve of one point would be invisible.
    marker = "o" if len(curve.x) <= 30 else ""
    lowest = np.nanmin(values, axis=0)
    highest = np.nanmax(values, axis=0)
    axes.fill_between(x, lowest, highest, color=colour, alpha=0.16, linewidth=0)
    axes.plot(
        x,
        np.nanmean(values, axis=0),
        line + marker,
        color=colour,
        label=title_text(curve.label, MAX_NAME_LENGTH),
        linewidth=1.6,
        markersize=3,
    )


def seeded_panels(
    panels: Mapping[str, Sequence[SeededCurve]], axis: str, ticks: Sequence[str] | None = None
) -> Figure:
    """Figure of panels side by side, {title: curves}, with one legend below.

    A line is the mean over the seeds, its band the range from the least to the greatest.

    Args:
        axis: label of the x axis.
        ticks: labels of its places 0, 1, ...; None for numbers.
    """
    labels = {curve.label for curves in panels.values() for curve in curves}
    figure = new_figure(max(7.2, 4.6 * len(panels)), 3.4 + 0.08 * len(labels))
    for index, (title, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index, title=title, x=axis)
        for curve in curves:
            _draw(axes, curve)
        if ticks is None:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        else:
            axes.set_xticks(range(len(ticks)), ticks, fontsize=8)
    shared_legend(figure)
    return figure


@dataclass(frozen=True)
class SystemInterval:
    """The quality of a system, to draw as a row.

    values: of the seeds.
    low, high: None without an interval.
    note: at the right end of the row.
    number: of the system; selects its colour.
    """

    label: str
    values: Sequence[float]
    mean: float
    low: float | None
    high: float | None
    note: str
    number: int


def interval_panels(panels: Mapping[str, Sequence[SystemInterval]]) -> Figure:
    """Figure of panels side by side, {measure: systems}.

    A row for each system, the first on top, the same in all panels.
    """
    most_rows = max(map(len, panels.values()))
    figure = new_figure(max(7.2, 2.6 + 2.8 * len(panels)), 0.9 + 0.36 * most_rows)
    for index, (measure, systems) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index, x=measure)
        axes.grid(False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        for row, system in enumerate(systems):
            _draw_row(axes, row, system)

        # The rows are the same in all panels, so the names stand at the first one alone.
        names = [""] * len(systems)
        if index == 1:
            names = [title_text(system.label, MAX_NAME_LENGTH) for system in systems]
        axes.set_yticks(range(len(systems)), names)
        axes.set_ylim(len(systems) - 0.5, -0.5)  # downwards, as one reads
    return figure


def _draw_row(axes: Axes, row: int, system: SystemInterval) -> None:
    """The interval as a line, the seeds as rings, their mean as a dot, and the note."""
    colour = COLOURS[system.number % len(COLOURS)]
    if system.low is not None and system.high is not None:
        interval = [system.low, system.high]
        axes.plot(interval, [row, row], color=colour, linewidth=2, solid_capstyle="butt")
    rows = [row] * len(system.values)
    axes.plot(system.values, rows, "o", markersize=5, fillstyle="none", color=colour, alpha=0.6)
    axes.plot([system.mean], [row], "o", markersize=7, color=colour)
    axes.text(
        1.01,
        row,
        system.note,
        transform=axes.get_yaxis_transform(),
        va="center",
        fontsize=9,
        color=INK,
    )
