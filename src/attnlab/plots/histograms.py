"""How long the sentences of a corpus are."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.plots.figure import COLOURS, INK, new_figure, styled_axes, use_our_fonts

_MOST_BARS = 2_000


def length_histogram(sides: Mapping[str, Mapping[int, int]]) -> Figure:
    """Figure of {side: {length in tokens: sentences}}, as steps over the same axis."""
    figure = new_figure(7.2, 2.8)
    axes = styled_axes(figure)
    for number, (label, counts) in enumerate(sides.items()):
        if not counts:
            continue
        shortest, longest = min(counts), max(counts)
        # A bar is as wide as a token is long, from a half below to a half above; wider where nobody could see it.
        width = (longest - shortest) // _MOST_BARS + 1
        heights = [0] * ((longest - shortest) // width + 1)
        for length, sentences in counts.items():
            heights[(length - shortest) // width] += sentences
        edges = [shortest - 0.5 + width * bar for bar in range(len(heights) + 1)]
        axes.stairs(heights, edges, fill=True, color=COLOURS[number], alpha=0.35)
        axes.stairs(heights, edges, color=COLOURS[number], linewidth=1.2, label=label)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("tokens, <eos> not counted", fontsize=9, color=INK)
    axes.set_ylabel("sentences", fontsize=9, color=INK)
    if any(sides.values()):
        axes.legend(fontsize=8, frameon=False)
    use_our_fonts(figure)
    return figure
