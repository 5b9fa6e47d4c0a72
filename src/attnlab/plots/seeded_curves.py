"""Panels of curves over several seeds: the mean as a line, the range as a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from attnlab.plots.figure import COLOURS, GRID, INK, new_figure, shared_legend, styled_axes


@dataclass(frozen=True, eq=False)
class SeededCurve:
    """One value along an axis, measured once for each seed.

    label: in the legend.
    x: P places on the axis.
    values: (seeds, P); NaN where nothing was measured.
    colour: an index into COLOURS.
    dashed: distinguishes curves of one colour.
    """

    label: str
    x: Sequence[float]
    values: ArrayLike
    colour: int
    dashed: bool = False

    def __post_init__(self) -> None:
        shape = np.shape(self.values)
        if len(shape) != 2 or shape[0] == 0 or shape[1] != len(self.x):
            raise ValueError(f"values must be (seeds, P) with P = {len(self.x)} places, got {shape}")


def draw_curves(axes: Axes, curves: Sequence[SeededCurve], marker: str | None = None, geometric: bool = False) -> None:
    """Draw the mean over the seeds as a line, and the range from least to greatest as a band.

    geometric: use the geometric mean, which suits a logarithmic axis.
    """
    for curve in curves:
        values: NDArray[np.float64] = np.asarray(curve.values, dtype=np.float64)
        measured = ~np.isnan(values).all(0)
        x, values = np.asarray(curve.x)[measured], values[:, measured]
        colour = COLOURS[curve.colour]
        style = "--" if curve.dashed else "-"
        axes.fill_between(x, np.nanmin(values, 0), np.nanmax(values, 0), color=colour, alpha=0.16, linewidth=0)
        mean = np.exp(np.nanmean(np.log(values), 0)) if geometric else np.nanmean(values, 0)
        axes.plot(x, mean, style, color=colour, label=curve.label, linewidth=1.6, marker=marker, markersize=3)


_FEW = 30  # longest curve with markers: a curve of one point would be invisible


def seeded_panels(panels: Mapping[str, Sequence[SeededCurve]], axis: str, ticks: Sequence[str] | None = None) -> Figure:
    """Figure of panels side by side, {title: curves}, with one legend below.

    Args:
        axis: label of the x axis.
        ticks: labels of its places 0, 1, ...; None for numbers.
    """
    labels = {curve.label for curves in panels.values() for curve in curves}
    figure = new_figure(max(7.2, 4.6 * len(panels)), 3.4 + 0.08 * len(labels))
    for index, (title, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index)
        longest = max((len(curve.x) for curve in curves), default=0)
        draw_curves(axes, curves, marker="o" if longest <= _FEW else None)
        axes.set_title(title, fontsize=10, color=INK, loc="left")
        axes.set_xlabel(axis, fontsize=9, color=INK)
        if ticks is None:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        else:
            axes.set_xticks(range(len(ticks)), ticks, fontsize=8)
    shared_legend(figure)
    return figure


def length_generalisation_figure(
    panels: Mapping[str, Sequence[SeededCurve]], trained: tuple[int, int], greatest: Mapping[str, float]
) -> Figure:
    """Panels side by side, {measure: curves over the source length}.

    Args:
        trained: the least and the greatest length of the training, which are shaded.
        greatest: {measure: its best value}, where its axis ends.
    """
    figure = new_figure(4.4 * len(panels), 3.7)
    for index, (measure, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index)
        axes.axvspan(trained[0] - 0.5, trained[1] + 0.5, color=GRID, alpha=0.6, linewidth=0, label="lengths trained on")
        draw_curves(axes, curves, marker="o")
        axes.set_ylim(-0.02 * greatest[measure], 1.04 * greatest[measure])
        axes.set_title(measure, fontsize=10, color=INK, loc="left")
        axes.set_xlabel("source tokens, <eos> not counted", fontsize=9, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    # The panels share their curves, so one legend serves all.
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    return figure


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def gradient_flow_figure(panels: Mapping[str, Sequence[SeededCurve]]) -> Figure:
    """Panels side by side, {title: curves}, on one logarithmic axis.

    curves: a gradient norm, above 0, by distance.
    """
    figure = new_figure(4.4 * len(panels), 3.9)
    for index, (title, curves) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, 1, len(panels), index)
        if index == 1:
            axes.set_ylabel("norm of the loss gradient", fontsize=9, color=INK)
        else:
            axes.sharey(figure.axes[0])
            axes.tick_params(labelleft=False)
        draw_curves(axes, curves, geometric=True)
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10, color=INK, loc="left")
        axes.set_xlabel("tokens from the end of the source", fontsize=9, color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(LogLocator(numticks=12))
        # matplotlib would set powers of ten as formulas, which our fonts do not cover.
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    # The panels share their curves, so one legend serves all.
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    return figure


def power_of_ten(value: float) -> str:
    """`10⁻³` for 0.001; empty where the value is no power of ten."""
    exponent = np.log10(value)
    if abs(exponent - round(exponent)) > 1e-9:
        return ""
    return "10" + str(round(exponent)).translate(_SUPERSCRIPTS)
