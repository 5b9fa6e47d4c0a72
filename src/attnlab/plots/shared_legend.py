"""One legend below panels that draw the same systems."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.figure import Figure

from attnlab.plots.figure import COLOURS, title_text

_INCHES_A_CHARACTER, _INCHES_A_LINE = 0.075, 0.55
_LONGEST = 60  # characters


def colour_of(number: int) -> int:
    """Which colour the system of this number has: after the last one they begin again."""
    return number % len(COLOURS)


def repeats(number: int) -> int:
    """How often all colours were used before: then lines are dashed, or marks have another shape."""
    return number // len(COLOURS)


def legend_text(label: str) -> str:
    shown = title_text(label)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


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
        list(found.values()), list(found), loc="outside lower center", ncols=columns, fontsize=8, frameon=False
    )
