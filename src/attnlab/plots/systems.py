"""Figures of compared systems: intervals of their quality, and quality against cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from attnlab.plots.figure import (
    COLOURS,
    INK,
    colour_of,
    legend_text,
    new_figure,
    repeats,
    shared_legend,
    styled_axes,
)


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
    axes = styled_axes(figure)
    for system in systems:
        colour, mark = COLOURS[colour_of(system.number)], _MARKS[repeats(system.number) % len(_MARKS)]
        axes.plot(system.costs, system.values, mark, markersize=4, alpha=0.5, color=colour, markeredgewidth=0)
        mean = [sum(numbers) / len(numbers) for numbers in (system.costs, system.values)]
        axes.plot(*([number] for number in mean), mark, markersize=9, color=colour, label=legend_text(system.label))
    axes.set_xlim(left=0)
    axes.set_xlabel(cost, fontsize=9, color=INK)
    axes.set_ylabel(measure, fontsize=9, color=INK)
    shared_legend(figure)
    return figure
