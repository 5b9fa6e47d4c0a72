"""Figures of compared systems over several seeds: curves, intervals of their quality, and quality against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from attnlab.plots.figure import COLOURS, GRID, INK, LONGEST_NAME, new_figure, shared_legend, styled_axes, title_text


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


def _draw(axes: Axes, curve: SeededCurve, geometric: bool) -> None:
    values = np.asarray(curve.values, dtype=np.float64)
    measured = ~np.isnan(values).all(0)
    x, values = np.asarray(curve.x)[measured], values[:, measured]
    colour = COLOURS[curve.colour % len(COLOURS)]
    # Short curves get markers: a curve of one point would be invisible.
    style = ("--" if curve.dashed else "-") + ("o" if len(curve.x) <= 30 else "")
    axes.fill_between(x, np.nanmin(values, 0), np.nanmax(values, 0), color=colour, alpha=0.16, linewidth=0)
    mean = np.exp(np.nanmean(np.log(values), 0)) if geometric else np.nanmean(values, 0)
    axes.plot(x, mean, style, color=colour, label=title_text(curve.label, LONGEST_NAME), linewidth=1.6, markersize=3)


def _panels(panels: Mapping[str, Sequence[SeededCurve]], axis: str, geometric: bool = False) -> Figure:
    labels = {curve.label for curves in panels.values() for curve in curves}
    figure = new_figure(max(7.2, 4.6 * len(panels)), 3.4 + 0.08 * len(labels))
    for index, (title, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index, title=title, x=axis)
        for curve in curves:
            _draw(axes, curve, geometric)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    return figure


def seeded_panels(panels: Mapping[str, Sequence[SeededCurve]], axis: str, ticks: Sequence[str] | None = None) -> Figure:
    """Figure of panels side by side, {title: curves}, with one legend below. A line is the mean over the seeds, its
    band the range from the least to the greatest.

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


def length_generalisation_figure(panels: Mapping[str, Sequence[SeededCurve]], trained: tuple[int, int]) -> Figure:
    """As `seeded_panels`, of measures in 0..100 over the source length.

    trained: the least and the greatest length of the training, which are shaded.
    """
    figure = _panels(panels, "source tokens, <eos> not counted")
    for axes in figure.axes:
        axes.axvspan(trained[0] - 0.5, trained[1] + 0.5, color=GRID, alpha=0.6, linewidth=0, label="lengths trained on")
        axes.set_ylim(-2, 104)
    shared_legend(figure)
    return figure


def gradient_flow_figure(panels: Mapping[str, Sequence[SeededCurve]]) -> Figure:
    """As `seeded_panels`, of gradient norms, above 0, by distance; with one logarithmic axis and geometric means."""
    figure = _panels(panels, "tokens from the end of the source", geometric=True)
    for axes in figure.axes:
        axes.set_yscale("log")
    ends = [end for axes in figure.axes for end in axes.get_ylim()]
    for axes in figure.axes:
        axes.set_ylim(min(ends), max(ends))
        axes.yaxis.set_major_locator(LogLocator(numticks=12))
        # matplotlib would set powers of ten as formulas, which our fonts do not cover.
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    figure.axes[0].set_ylabel("norm of the loss gradient", fontsize=9, color=INK)
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


def interval_figure(systems: Sequence[SystemInterval], axis: str) -> Figure:
    """Figure with one row for each system, the first on top. axis: the measure."""
    figure = new_figure(7.2, 0.9 + 0.36 * len(systems))
    axes = styled_axes(figure, x=axis)
    axes.grid(False, axis="y")
    for row, system in enumerate(systems):
        colour = COLOURS[system.number % len(COLOURS)]
        if system.low is not None and system.high is not None:
            axes.plot([system.low, system.high], [row, row], color=colour, linewidth=2, solid_capstyle="butt")
        rows = [row] * len(system.values)
        axes.plot(system.values, rows, "o", markersize=5, fillstyle="none", color=colour, alpha=0.6)
        axes.plot([system.mean], [row], "o", markersize=7, color=colour)
        at_the_end = axes.get_yaxis_transform()
        axes.text(1.01, row, system.note, transform=at_the_end, va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(systems)), [title_text(system.label, LONGEST_NAME) for system in systems])
    axes.set_ylim(len(systems) - 0.5, -0.5)  # downwards, as one reads
    return figure


_MARKS = ("o", "s", "^", "D")


@dataclass(frozen=True)
class SystemCost:
    """costs, values: of each seed. number: of the system; selects its colour."""

    label: str
    costs: Sequence[float]
    values: Sequence[float]
    number: int


def cost_scatter(systems: Sequence[SystemCost], cost: str, measure: str) -> Figure:
    """Figure of quality upwards and cost to the right: large marks for means, small ones for seeds."""
    figure = new_figure(7.2, 3.2 + 0.08 * len(systems))
    axes = styled_axes(figure, x=cost, y=measure)
    for system in systems:
        colour = COLOURS[system.number % len(COLOURS)]
        mark = _MARKS[system.number // len(COLOURS) % len(_MARKS)]  # where colours repeat
        axes.plot(system.costs, system.values, mark, markersize=4, alpha=0.5, color=colour, markeredgewidth=0)
        label = title_text(system.label, LONGEST_NAME)
        axes.plot([np.mean(system.costs)], [np.mean(system.values)], mark, markersize=9, color=colour, label=label)
    axes.set_xlim(left=0)
    shared_legend(figure)
    return figure
