"""Empty figures, styled axes, legends and PNG files.

Without pyplot and global state: the same figure gives the same bytes each time.
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
INK = "#24292f"
GRID = "#d8dee4"
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
    words = [drawable(word) for word in text.split()]
    return _shortened(" ".join(words), longest)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return text[: longest - 1] + "…"


def png_bytes(figure: Figure, dpi: int = 120) -> bytes:
    """The figure as PNG, without a date or the name of the software."""
    use_our_fonts(figure)
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # `savefig` would lay the figure out, draw it, and draw it again
    stream = BytesIO()
    metadata: dict[str, Any] = {"Software": None}
    imsave(stream, canvas.buffer_rgba(), format="png", origin="upper", dpi=dpi, metadata=metadata)
    return stream.getvalue()


def use_our_fonts(figure: Figure) -> None:
    """Draw all texts of the figure with fonts that have their characters.

    None of them is mathematics: a `$` in a token would start a formula. Call it when all texts are
    there.
    """
    families = list(font_families())
    for axes in figure.axes:
        axes.tick_params(which="both", labelfontfamily=families)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontfamily(families)
        text.set_parse_math(False)


def save_png(figure: Figure, path: Path) -> None:
    """Write the figure as PNG, whole or not at all."""
    with atomic_file(Path(path)) as temporary:
        temporary.write_bytes(png_bytes(figure))


# Of the labels in a legend, and of the coloured line before each of them.
_INCHES_A_CHARACTER = 0.075
_INCHES_A_LINE = 0.55

MAX_NAME_LENGTH = 60  # characters of a system in a legend


def shared_legend(figure: Figure) -> None:
    """Put the labels of all panels, each once, below them, in as many columns as fit."""
    handle_of: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            handle_of.setdefault(str(label), handle)
    if not handle_of:
        return

    longest_label = max(map(len, handle_of))
    entry_inches = longest_label * _INCHES_A_CHARACTER + _INCHES_A_LINE
    fitting = int(figure.get_figwidth() / entry_inches)
    columns = max(1, min(len(handle_of), fitting))
    figure.legend(
        list(handle_of.values()),
        list(handle_of),
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
        frameon=False,
    )
