"""Quality by source length beyond the lengths of the training, as in figure 2 of Bahdanau et al. 2015."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.plots.bands import SeededCurve, draw_curves
from attnlab.plots.figure import GRID, INK, new_figure, styled_axes, use_our_fonts


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
    use_our_fonts(figure)
    return figure
