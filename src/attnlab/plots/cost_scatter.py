"""What quality costs: each system's place between the two, and that of each of its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from attnlab.plots.figure import COLOURS, INK, new_figure, styled_axes, use_our_fonts
from attnlab.plots.shared_legend import colour_of, legend_text, repeats, shared_legend

_MARKS = ("o", "s", "^", "D")


@dataclass(frozen=True)
class SystemCost:
    """costs, values: of each seed. number: of the system, which gives it its colour."""

    label: str
    costs: Sequence[float]
    values: Sequence[float]
    number: int


def cost_scatter(systems: Sequence[SystemCost], cost: str, measure: str) -> Figure:
    """Figure of quality upwards and cost to the right: large marks for the means, small ones for the seeds."""
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
    use_our_fonts(figure)
    return figure
