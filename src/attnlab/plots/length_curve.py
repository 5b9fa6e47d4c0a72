"""Quality against the length of the source, with the number of sentences each point stands on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.plots.figure import COLOURS, GRID, INK, new_figure, styled_axes, use_our_fonts


def length_curve(by_length: Sequence[Mapping[str, float]]) -> Figure:
    """Figure of rows {"from", "to", "sentences", "bleu" (0..100), "exact_match" (0..1)}, one point each."""
    figure = new_figure(7.2, 3.4)
    axes = styled_axes(figure)
    positions = range(len(by_length))
    counts = axes.twinx()
    counts.bar(positions, [row["sentences"] for row in by_length], color=GRID, width=0.9, zorder=0)
    counts.yaxis.set_major_locator(MaxNLocator(integer=True))
    counts.set_ylabel("sentences (bars)", fontsize=9, color=INK)
    counts.tick_params(colors=INK, labelsize=8)
    counts.spines[["top"]].set_visible(False)
    # The curves belong above the bars, though the bars' axes came second.
    axes.set_zorder(counts.get_zorder() + 1)
    axes.patch.set_visible(False)
    for number, (name, label, factor) in enumerate((("bleu", "BLEU", 1), ("exact_match", "exact match (%)", 100))):
        values = [factor * row[name] for row in by_length]
        axes.plot(positions, values, label=label, color=COLOURS[number], marker="o", markersize=4)
    axes.set_ylim(0, 105)
    axes.set_xticks(positions, [_range(row) for row in by_length])
    axes.set_xlabel("source tokens, <eos> not counted", fontsize=9, color=INK)
    axes.legend(fontsize=8, loc="lower left", framealpha=0.8)
    use_our_fonts(figure)
    return figure


def _range(row: Mapping[str, float]) -> str:
    low, high = int(row["from"]), int(row["to"])
    return str(low) if low == high else f"{low}–{high}"
