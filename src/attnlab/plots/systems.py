"""Figures of compared systems over several seeds: curves, intervals of their quality, and quality
against cost.
"""

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
    LONGEST_NAME,
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
    values = np.asarray(curve.values, dtype=np.float64)
    measured = ~np.isnan(values).all(0)
    x, values = np.asarray(curve.x)[measured], values[:, measured]
    colour = COLOURS[curve.colour % len(COLOURS)]
    # Short curves get markers: a curve of one point would be invisible.
    style = ("--" if curve.dashed else "-") + ("o" if len(curve.x) <= 30 else "")
    axes.fill_between(
        x, np.nanmin(values, 0), np.nanmax(values, 0), color=colour, alpha=0.16, linewidth=0
    )
    axes.plot(
        x,
        np.nanmean(values, 0),
        style,
        color=colour,
        label=title_text(curve.label, LONGEST_NAME),
        linewidth=1.6,
        markersize=3,
    )


def _panels(panels: Mapping[str, Sequence[SeededCurve]], axis: str) -> Figure:
    labels = {curve.label for curves in panels.values() for curve in curves}
    figure = new_figure(max(7.2, 4.6 * len(panels)), 3.4 + 0.08 * len(labels))
    for index, (title, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index, title=title, x=axis)
        for curve in curves:
            _draw(axes, curve)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    return figure


def seeded_panels(
    panels: Mapping[str, Sequence[SeededCurve]], axis: str, ticks: Sequence[str] | None = None
) -> Figure:
    """Figure of panels side by side, {title: curves}, with one legend below. A line is the mean
    over the seeds, its band the range from the least to the greatest.

    Args:
        axis: label of the x axis.
        ticks: labels of its places 0, 1, ...; None for numbers.
    """
    figure = _panels(panels, axis)
    if ticks is not None:
        for axes in figure.axes:
            axes.set_xticks(range(len(ticks)), ticks, fontsize=8)
    shared_legend(figure)
    return figure


@dataclass(frozen=True)
class SystemInterval:
    """values: of the seeds. low, high: None without an interval. note: at the right end.

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
    """Figure of panels side by side, {measure: systems}: a row for each system, the first on top,
    the same in all.
    """
    most = max(map(len, panels.values()))
    figure = new_figure(max(7.2, 2.6 + 2.8 * len(panels)), 0.9 + 0.36 * most)
    for index, (measure, systems) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index, x=measure)
        axes.grid(False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        for row, system in enumerate(systems):
            colour = COLOURS[system.number % len(COLOURS)]
            if system.low is not None and system.high is not None:
                axes.plot(
                    [system.low, system.high],
                    [row, row],
                    color=colour,
                    linewidth=2,
                    solid_capstyle="butt",
                )
            rows = [row] * len(system.values)
            axes.plot(
                system.values, rows, "o", markersize=5, fillstyle="none", color=colour, alpha=0.6
            )
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
        labels = (
            [title_text(system.label, LONGEST_NAME) for system in systems]
            if index == 1
            else [""] * len(systems)
        )
        axes.set_yticks(range(len(systems)), labels)
        axes.set_ylim(len(systems) - 0.5, -0.5)  # downwards, as one reads
    return figure
