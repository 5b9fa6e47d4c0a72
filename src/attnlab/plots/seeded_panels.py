"""Panels of curves with bands over the seeds: learning, or quality by the length of the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.plots.bands import SeededCurve, draw_curves
from attnlab.plots.figure import INK, new_figure, styled_axes, use_our_fonts
from attnlab.plots.shared_legend import shared_legend

_FEW = 30  # points that are marked: a curve of one would not be seen


def seeded_panels(panels: Mapping[str, Sequence[SeededCurve]], axis: str, ticks: Sequence[str] | None = None) -> Figure:
    """Figure of panels side by side, {title: curves}, with one legend below.

    Args:
        axis: what stands along the axis.
        ticks: what its places 0, 1, ... are called; None for numbers.
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
    use_our_fonts(figure)
    return figure
