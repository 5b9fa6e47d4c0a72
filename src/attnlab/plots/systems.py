"""Systems under each other: a dot for the mean, a line for its interval, a ring for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from attnlab.plots.figure import COLOURS, INK, new_figure, styled_axes, use_our_fonts
from attnlab.plots.shared_legend import colour_of, legend_text


@dataclass(frozen=True)
class SystemInterval:
    """values: of the seeds. low, high: None where there is no interval. note: letters, at the right end.

    number: of the system, which gives it its colour.
    """

    label: str
    values: Sequence[float]
    mean: float
    low: float | None
    high: float | None
    note: str
    number: int


def interval_figure(systems: Sequence[SystemInterval], axis: str) -> Figure:
    """Figure of one row a system, the first on top; `axis` says what is measured."""
    figure = new_figure(7.2, 0.9 + 0.36 * len(systems))
    axes = styled_axes(figure)
    axes.grid(False, axis="y")
    for row, system in enumerate(systems):
        colour = COLOURS[colour_of(system.number)]
        if system.low is not None and system.high is not None:
            axes.plot([system.low, system.high], [row, row], color=colour, linewidth=2, solid_capstyle="butt")
        rows = [row] * len(system.values)
        axes.plot(system.values, rows, "o", markersize=5, fillstyle="none", color=colour, alpha=0.6)
        axes.plot([system.mean], [row], "o", markersize=7, color=colour)
        axes.text(
            1.01, row, system.note, transform=axes.get_yaxis_transform(), va="center", fontsize=9, color=INK
        )  # fmt: skip
    axes.set_yticks(range(len(systems)), [legend_text(system.label) for system in systems])
    axes.set_ylim(len(systems) - 0.5, -0.5)  # downwards, as one reads
    axes.set_xlabel(axis, fontsize=9, color=INK)
    use_our_fonts(figure)
    return figure
