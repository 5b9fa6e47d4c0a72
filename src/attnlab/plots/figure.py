"""Empty figures, styled axes, legends and PNG files: no pyplot, no global state, the same bytes
each time.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.text import Text

from attnlab.files import atomic_file
from attnlab.plots.fonts import drawable, font_families

PAGE_DPI = 140  # of pictures inside a page
INK, GRID = "#24292f", "#d8dee4"
COLOURS = ("#0b62a8", "#c2410c", "#15803d", "#7c3aed", "#be185d", "#0e7490", "#a16207", "#57606a")


def new_figure(width: float, height: float) -> Figure:
    """An empty white figure, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def styled_axes(
    figure: Figure,
    rows: int = 1,
    columns: int = 1,
    index: int = 1,
    *,
    title: str = "",
    x: str = "",
    y: str = "",
) -> Axes:
    """Axes with a light grid behind the data, a title and labels."""
    axes = figure.add_subplot(rows, columns, index)
    axes.set_axisbelow(True)
    axes.grid(True, color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    return axes


def label_text(token: str, longest: int = 24) -> str:
    """A token or a name, drawable and at most `longest` characters."""
    return _shortened(drawable(token) or "∅", longest)


def title_text(text: str, longest: int = 1000) -> str:
    """The words of a title, each of them drawable; at most `longest` characters."""
    return _shortened(" ".join(drawable(word) for word in text.split()), longest)


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def png_bytes(figure: Figure, dpi: int = 120) -> bytes:
    """The figure as PNG, without a date or the name of the software."""
    _use_our_fonts(figure)
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # `savefig` would lay the figure out, draw it, and draw it again
    stream = BytesIO()
    metadata: dict[str, Any] = {"Software": None}
    imsave(stream, canvas.buffer_rgba(), format="png", origin="upper", dpi=dpi, metadata=metadata)
    return stream.getvalue()


def _use_our_fonts(figure: Figure) -> None:
    """Draw all texts of the figure with fonts that have their characters, and none of them as
    mathematics.

    It comes last, when all texts are there: a `$` in a token would start a formula.
    """
    for axes in figure.axes:
        axes.tick_params(which="both", labelfontfamily=list(font_families()))
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontfamily(list(font_families()))
        text.set_parse_math(False)


def save_png(figure: Figure, path: Path) -> None:
    """Write the figure as PNG, whole or not at all."""
    with atomic_file(Path(path)) as temporary:
        temporary.write_bytes(png_bytes(figure))


_INCHES_A_CHARACTER, _INCHES_A_LINE = 0.075, 0.55
LONGEST_NAME = 60  # characters of a system in a legend


def shared_legend(figure: Figure) -> None:
    """Put the labels of all panels, each once, below them, in as many columns as fit."""
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(str(label), handle)
    if not found:
        return
    widest = max(map(len, found)) * _INCHES_A_CHARACTER + _INCHES_A_LINE
    columns = max(1, min(len(found), int(figure.get_figwidth() / widest)))
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
        frameon=False,
    )
