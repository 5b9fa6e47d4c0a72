"""How far beside the right source token the attention looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from attnlab.plots.figure import COLOURS, INK, new_figure, styled_axes, use_our_fonts

FARTHEST = 4  # offsets beyond it are counted at the edge


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
    use_our_fonts(figure)
    return figure


def _tick(offset: int) -> str:
    return f"≤{offset}" if offset == -FARTHEST else f"≥{offset}" if offset == FARTHEST else str(offset)
