"""A figure without pyplot and without global state, and its PNG, the same bytes each time."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from attnlab.files import atomic_file
from attnlab.plots.fonts import drawable, font_families

INK, GRID = "#24292f", "#d8dee4"
COLOURS = ("#0b62a8", "#c2410c", "#15803d", "#7c3aed", "#be185d", "#0e7490", "#a16207", "#57606a")


def new_figure(width: float, height: float) -> Figure:
    """An empty white figure, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def styled_axes(figure: Figure, rows: int = 1, columns: int = 1, index: int = 1) -> Axes:
    """Axes with a light grid behind the data."""
    axes = figure.add_subplot(rows, columns, index)
    axes.set_axisbelow(True)
    axes.grid(True, color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9)
    return axes


def use_our_fonts(figure: Figure) -> None:
    """Draw all texts of the figure with fonts that have their characters, and none of them as mathematics.

    To be called last, when all texts are there: a `$` in a token would start a formula.
    """
    for axes in figure.axes:
        axes.tick_params(which="both", labelfontfamily=list(font_families()))
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontfamily(list(font_families()))
        text.set_parse_math(False)


def title_text(text: str) -> str:
    """A title's words with spaces kept and everything drawable."""
    return " ".join(drawable(word) for word in text.split())


def png_bytes(figure: Figure, dpi: int = 120) -> bytes:
    """The figure as PNG, without a date or the name of the software."""
    use_our_fonts(figure)
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=dpi, metadata={"Software": None})
    return stream.getvalue()


def save_png(figure: Figure, path: Path, dpi: int = 120) -> None:
    """Write the figure as PNG, whole or not at all."""
    with atomic_file(Path(path)) as temporary:
        temporary.write_bytes(png_bytes(figure, dpi))
