"""Histograms of sentence lengths, and of attention offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.plots.figure import COLOURS, INK, new_figure, styled_axes

_MOST_BARS = 2_000


def length_histogram(sides: Mapping[str, Mapping[int, int]]) -> Figure:
    """Figure of {side: {length in tokens: sentences}}, as steps over the same axis."""
    figure = new_figure(7.2, 2.8)
    axes = styled_axes(figure)
    for number, (label, counts) in enumerate(sides.items()):
        if not counts:
            continue
        shortest, longest = min(counts), max(counts)
        # A bar covers one length, centred on it; several where bars would be too thin to see.
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
    return figure


FARTHEST = 4  # larger offsets count at the edge


def offset_histogram(panels: Mapping[str, Sequence[Mapping[str, int]]], columns: int = 4) -> Figure:
    """Figure of the share of aligned target tokens at each offset, a panel for each title.

    panels: {title: rows {"offset", "tokens"}}, as `AlignmentOffsets.compute` gives them.
    columns: panels side by side at most.
    """
    columns = min(columns, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    figure = new_figure(max(7.2, 2.7 * columns), max(2.2, 1.9 * rows + 0.3))
    for index, (title, counts) in enumerate(panels.items(), start=1):
        axes = styled_axes(figure, rows, columns, index)
        total = sum(row["tokens"] for row in counts)
        shares = dict.fromkeys(range(-FARTHEST, FARTHEST + 1), 0.0)
        for row in counts:
            shares[max(-FARTHEST, min(FARTHEST, row["offset"]))] += row["tokens"] / total if total else 0.0
        colours = [COLOURS[0] if offset == 0 else COLOURS[1] for offset in shares]
        axes.bar(list(shares), list(shares.values()), width=0.85, color=colours)
        axes.set_ylim(0, 1)
        axes.set_xticks(list(shares), [_tick(offset) for offset in shares])
        axes.set_title(title, fontsize=9, color=INK)
        if (index - 1) % columns == 0:
            axes.set_ylabel("share of tokens", fontsize=8, color=INK)
        if index > len(panels) - columns:
            axes.set_xlabel("offset in source tokens", fontsize=8, color=INK)
    return figure


def _tick(offset: int) -> str:
    return f"≤{offset}" if offset == -FARTHEST else f"≥{offset}" if offset == FARTHEST else str(offset)
