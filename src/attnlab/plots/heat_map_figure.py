"""Heat maps as figures, for trackers and programs that show pictures: the look of a light page."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.colour_scale import LEVELS, LIGHT, RGB, as_hex
from attnlab.plots.figure import GRID, INK, label_text, new_figure, title_text
from attnlab.plots.heat_map import WRONG_SIGN, HeatMap

# In inches. Cells shrink where the picture would become larger than the limit.
_CELL_SIZE = 0.5
_SIZE_LIMIT = 24.0
_SMALLEST_CELL_WITH_WEIGHT = 0.28
_SCALE_HEIGHT = 3.0

_POINTS = 72  # an inch
_LINK_INSET = 0.06  # of the side of a cell

# Weights take the colour of the nearest level, as on a page.
_COLOURS = ListedColormap([as_hex(colour) for colour in LIGHT.colours])
_LEVEL_EDGES = [(level - 0.5) / LEVELS for level in range(LEVELS + 2)]


def heat_map_figure(attention: AttentionMap) -> Figure:
    """Figure of one sentence: cell (column s, row t) is centred on (s, t).

    The scale goes from 0 to 1 in every picture, so that pictures can be compared. A character
    without a font is written as its code point.
    """
    described = HeatMap.of(attention)
    rows, columns = described.weights.shape
    if rows == 0 or columns == 0:
        return _figure_without_tokens(described)
    cell = min(_CELL_SIZE, _SIZE_LIMIT / max(rows, columns))
    font_size = max(3.0, min(12.0, _POINTS * cell * 0.45))
    heads = [label_text(label) for label in described.source]
    labels = [_row_label(described, row) for row in range(rows)]

    inches_a_character = font_size / _POINTS * 0.9
    head_inches = max(map(len, heads)) * inches_a_character
    label_inches = max(map(len, labels)) * inches_a_character
    width = max(4.5, columns * cell + label_inches + 1.6)
    height = max(2.0, rows * cell + head_inches + 1.4)
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    _add_wrapped_title(figure, described.title, width)

    norm = BoundaryNorm(_LEVEL_EDGES, _COLOURS.N, clip=True)
    image = axes.imshow(
        abs(described.weights), cmap=_COLOURS, norm=norm, interpolation="nearest", aspect="equal"
    )
    _add_labels(axes, described, heads, labels, font_size)
    _add_cell_borders(axes, rows, columns)
    if cell >= _SMALLEST_CELL_WITH_WEIGHT:
        _add_weights(axes, described, font_size=min(11.0, _POINTS * cell * 0.33))
    _add_links(axes, described)
    _add_legend(figure, described)

    shrink = min(1.0, _SCALE_HEIGHT / (rows * cell))
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, shrink=shrink)
    bar.set_ticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    if abs(described.weights).max() > 1.005:  # of weights that are no distribution
        bar.set_ticklabels(["0.0", "0.2", "0.4", "0.6", "0.8", "≥ 1.0"])
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=10, colors=INK)
    bar.outline.set_linewidth(0.4)
    return figure


def _figure_without_tokens(described: HeatMap) -> Figure:
    figure = new_figure(4.5, 1.0)
    _add_wrapped_title(figure, described.title, 4.5)
    figure.text(0.01, 0.2, "no tokens", fontsize=12, color=INK)
    return figure


def _row_label(described: HeatMap, row: int) -> str:
    label = label_text(described.target[row])
    return f"{WRONG_SIGN} {label}" if row in described.wrong else label


def _add_wrapped_title(figure: Figure, title: str, width: float) -> None:
    """A title in lines as wide as the figure, whose width is in inches."""
    if not title:
        return
    # About 9 characters of this size to the inch. matplotlib's own wrapping reads `$` as
    # mathematics.
    characters = max(20, int(9 * width))
    lines = textwrap.wrap(title_text(title), characters, max_lines=4, placeholder=" …")
    figure.suptitle("\n".join(lines), fontsize=13, color=INK, x=0.01, ha="left")


def _add_labels(
    axes: Axes, described: HeatMap, heads: list[str], labels: list[str], font_size: float
) -> None:
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(heads)), heads, fontsize=font_size)
    for head, label in zip(axes.get_xticklabels(), described.source, strict=True):
        if described.is_wide(label):
            head.set_rotation(90)
    axes.set_yticks(range(len(labels)), labels, fontsize=font_size)
    axes.tick_params(length=0, colors=INK)
    for row in described.wrong:
        axes.get_yticklabels()[row].set_color(as_hex(LIGHT.wrong))
    axes.spines[:].set_color(GRID)


def _add_cell_borders(axes: Axes, rows: int, columns: int) -> None:
    """Thin lines between the cells, which lead the eye from a token to its cell."""
    between_columns = [column - 0.5 for column in range(1, columns)]
    between_rows = [row - 0.5 for row in range(1, rows)]
    axes.vlines(between_columns, -0.5, rows - 0.5, colors=GRID, linewidth=0.6)
    axes.hlines(between_rows, -0.5, columns - 0.5, colors=GRID, linewidth=0.6)


def _add_weights(axes: Axes, described: HeatMap, font_size: float) -> None:
    inks = [as_hex(LIGHT.ink_on(colour)) for colour in LIGHT.colours]
    with_number = [cell for cell in described.cells if cell.text]
    for cell in with_number:
        number = axes.text(
            cell.column,
            cell.row,
            cell.text,
            ha="center",
            va="center",
            fontsize=font_size,
            color=inks[cell.level],
        )
        # It lies inside its cell; the layout would measure it several times.
        number.set_in_layout(False)


def _add_links(axes: Axes, described: HeatMap) -> None:
    """Outlines of the known links, with a light halo that shows them on dark cells too."""
    side = 1 - 2 * _LINK_INSET
    for (row, column), kind in described.links:
        corner = (column - 0.5 + _LINK_INSET, row - 0.5 + _LINK_INSET)
        outline = Rectangle(corner, side, side, **_link_style(kind))
        outline.set_path_effects([withStroke(linewidth=4.0, foreground="white")])
        axes.add_patch(outline)


def _link_style(kind: str) -> dict[str, Any]:
    return {
        "fill": False,
        "edgecolor": as_hex(LIGHT.link),
        "linewidth": 2.0,
        "linestyle": "--" if kind == "possible" else "-",
    }


def _add_legend(figure: Figure, described: HeatMap) -> None:
    """What the marks mean that the map has."""
    handles: list[Artist] = []
    if described.sure:
        handles.append(Patch(label="known alignment", **_link_style("sure")))
    if described.possible:
        handles.append(Patch(label="possible alignment", **_link_style("possible")))
    if described.wrong:
        label = f"{WRONG_SIGN} token: differs from the reference at its place"
        handles.append(Line2D([], [], linestyle="none", label=label))
    if not handles:
        return
    legend = figure.legend(
        handles=handles, loc="outside lower left", ncols=1, fontsize=10, frameon=False
    )
    for text in legend.get_texts():
        text.set_color(_legend_colour(text.get_text()))


def _legend_colour(label: str) -> str:
    colour: RGB = LIGHT.wrong if label.startswith(WRONG_SIGN) else LIGHT.ink
    return as_hex(colour)
