"""Figures as SVG inside a page, in the page's colours and fonts.

A page may set the variables `--ink`, `--line`, `--paper` and `--series-1` to `--series-8`, so that
a figure is right in light and in dark.
"""

from __future__ import annotations

import re
from io import StringIO

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure

from attnlab.plots.figure import COLOURS, GRID, INK, use_our_fonts

_VARIABLES = {INK: "ink", "#000000": "ink", GRID: "line", "#ffffff": "paper"} | {
    colour: f"series-{number}" for number, colour in enumerate(COLOURS, start=1)
}
_COLOUR = re.compile(f'(?<=: )({"|".join(_VARIABLES)})(?=[;"])')
# What a drawing program would need, and the page does not: the header, and names of groups, which
# several figures of a page share.
_HEADER = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)  # would hold for the whole page
_FONT = re.compile(r" font-family: [^;]*;")
_GROUP_NAME = re.compile(r'(?<=<g) id="[^"]*"')
_SIZE = re.compile(r' (?:width|height)="[\d.]+pt"')


def svg_markup(figure: Figure, name: str, words: str) -> Markup:
    """The figure as an `<svg>` element; the same figure gives the same text.

    name: another one for each figure of a page.
    words: what it shows, for those who cannot see it.
    """
    use_our_fonts(figure)
    stream = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(
            stream, format="svg", facecolor="none", metadata={"Date": None, "Creator": None}
        )
    text = _HEADER.sub("", stream.getvalue(), count=1)
    for superfluous in (_METADATA, _STYLE, _GROUP_NAME, _FONT):
        text = superfluous.sub("", text)
    text = _SIZE.sub("", text, count=2)
    text = _COLOUR.sub(lambda found: f"var(--{_VARIABLES[found[0]]}, {found[0]})", text)
    label = Markup('<svg role="img" aria-label="{}"').format(words)
    return Markup(text.replace("<svg", label, 1))  # matplotlib escapes the texts of a figure


class Chart:
    """A figure for the macro `picture` of parts.html."""

    def __init__(self, figure: Figure, name: str) -> None:
        self._figure = figure
        self._name = name
        self._drawn: dict[str, Markup] = {}

    def svg(self, words: str) -> Markup:
        """The `<svg>` element; words: see `svg_markup`."""
        # A page is rendered twice.
        if words not in self._drawn:
            self._drawn[words] = svg_markup(self._figure, self._name, words)
        return self._drawn[words]
