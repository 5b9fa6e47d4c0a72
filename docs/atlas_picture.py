"""The picture of docs/atlas.md: what each choice gets right on each corpus, as coloured cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.plots.colour_scale import LIGHT, RGB, as_hex
from attnlab.plots.figure import INK, new_figure

CELL = 0.4  # inches
NAMES = 1.6  # inches, for the names of a panel's rows
HEADS = 1.0  # inches, for a panel's title and the names of its columns
EDGE = 0.4  # inches, on the right and below


@dataclass(frozen=True)
class Panel:
    """A table of shares; a cell without one is empty.

    shares: by row and column.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    shares: Mapping[tuple[str, str], float]

    @property
    def height(self) -> float:
        return HEADS + CELL * len(self.rows)

    @property
    def width(self) -> float:
        return NAMES + CELL * len(self.columns)


def atlas_figure(stacks: Sequence[Sequence[Panel]]) -> Figure:
    """Stacks of panels, beside each other."""
    height = max(sum(panel.height for panel in stack) for stack in stacks)
    height += EDGE
    width = sum(stack[0].width for stack in stacks) + EDGE
    figure = new_figure(width, height)
    figure.set_layout_engine("none")
    left = 0.0
    for stack in stacks:
        top = height
        for panel in stack:
            top -= panel.height
            x, y = (left + NAMES) / width, top / height
            cells_width = CELL * len(panel.columns) / width
            cells_height = CELL * len(panel.rows) / height
            _draw(figure.add_axes((x, y, cells_width, cells_height)), panel)
        left += stack[0].width
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=11, color=INK, loc="left")
    axes.set_xlim(-0.5, len(panel.columns) - 0.5)
    axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(panel.columns)), panel.columns, fontsize=9, rotation=60, ha="left")
    axes.set_yticks(range(len(panel.rows)), panel.rows, fontsize=9)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_visible(False)
    for (row, column), share in panel.shares.items():
        _draw_cell(axes, panel.columns.index(column), panel.rows.index(row), share)


def _draw_cell(axes: Axes, x: int, y: int, share: float) -> None:
    colour = _colour(share)
    axes.fill(
        [x - 0.48, x + 0.48, x + 0.48, x - 0.48],
        [y - 0.48, y - 0.48, y + 0.48, y + 0.48],
        color=as_hex(colour),
    )
    ink = as_hex(LIGHT.ink_on(colour))
    axes.text(x, y, f"{100 * share:.0f}", fontsize=9, color=ink, ha="center", va="center")


def _colour(share: float) -> RGB:
    colours = LIGHT.colours
    return colours[round(share * (len(colours) - 1))]
