"""Sentences coloured by attention, in a figure and in HTML: the darker a token, the higher its weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.figure import INK, new_figure, title_text
from attnlab.plots.fonts import drawable, font_families
from attnlab.plots.html import render, visible

_WIDTH = 9.0  # inches
_MARGIN, _GAP = 0.15, 0.05  # inches: around all, between tokens
_LINE, _CAPTION, _BETWEEN = 0.30, 0.26, 0.16  # inches: heights of a line of tokens, of a caption, between sentences
_FONT, _CAPTION_FONT = 11, 9  # points
_LONGEST_TOKEN, _LONGEST_TITLE = 40, 90  # characters


@dataclass(frozen=True)
class _Token:
    """A token with its position: inches from the left, and the number of its line."""

    text: str
    weight: float
    left: float
    width: float
    line: int


def coloured_sentences(maps: Sequence[AttentionMap]) -> Figure:
    """Figure of sentences, each below its title.

    maps: of one row each. Colours are relative to a sentence's strongest token, whose weight stands beside the
        title: the weights of a long sentence are too small for a scale from 0 to 1.
    """
    ruler = new_figure(_WIDTH, 1)
    laid = [_lay_out(each, ruler) for each in maps]
    heights = [_CAPTION + _LINE * (max((token.line for token in tokens), default=0) + 1) + _BETWEEN for tokens in laid]
    height = 2 * _MARGIN + (sum(heights) if maps else _LINE)
    figure = new_figure(_WIDTH, height)
    figure.set_layout_engine("none")  # places are in inches here
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(height, 0)  # downwards, as one reads
    colours = matplotlib.colormaps["Blues"]
    top = _MARGIN
    for each, tokens, space in zip(maps, laid, heights, strict=True):
        most = float(each.weights.max(initial=0.0))
        caption = f"{_shortened(title_text(each.title), _LONGEST_TITLE)}   (darkest: {most:.2f})"
        axes.text(_MARGIN, top + _CAPTION / 2, caption, fontsize=_CAPTION_FONT, color="#57606a", va="center")
        for token in tokens:
            share = token.weight / most if most > 0 else 0.0
            y = top + _CAPTION + token.line * _LINE
            ground = Rectangle((token.left, y), token.width, 0.9 * _LINE, facecolor=_shade(colours, share), linewidth=0)
            axes.add_patch(ground)
            axes.text(
                token.left + token.width / 2, y + 0.45 * _LINE, token.text,
                fontsize=_FONT, color="white" if share > 0.75 else INK, ha="center", va="center",
            )  # fmt: skip
        top += space
    if not maps:
        axes.text(_MARGIN, _MARGIN + _LINE / 2, "no sentences", fontsize=_FONT, color=INK, va="center")
    return figure


def _lay_out(sentence: AttentionMap, ruler: Figure) -> list[_Token]:
    """Tokens from left to right, in as many lines as they need."""
    tokens: list[_Token] = []
    left, line = _MARGIN, 0
    for token, weight in zip(sentence.source_tokens, sentence.weights.sum(axis=0).tolist(), strict=True):
        text = _label(token)
        width = _text_width(text, ruler) + 2 * _GAP
        if left + width > _WIDTH - _MARGIN and left > _MARGIN:
            left, line = _MARGIN, line + 1
        tokens.append(_Token(text, weight, left, width, line))
        left += width + _GAP
    return tokens


def _text_width(text: str, ruler: Figure) -> float:
    """Inches, as a figure of the ruler's resolution draws it."""
    drawn = ruler.text(0, 0, text, fontsize=_FONT, fontfamily=list(font_families()), parse_math=False)
    width = drawn.get_window_extent().width / ruler.dpi
    drawn.remove()
    return width


def _shade(colours: Colormap, share: float) -> tuple[float, float, float, float]:
    """White for 0; without the darkest blues, on which text is unreadable."""
    return colours(0.8 * share) if share > 0 else (1.0, 1.0, 1.0, 1.0)


def _label(token: str) -> str:
    return _shortened(drawable(token) or "∅", _LONGEST_TOKEN)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def sentences_html(maps: Sequence[AttentionMap], title: str = "Attention") -> str:
    """A complete page with all sentences, without scripts: style rules show the weights.

    maps: of one row each; see `coloured_sentences`.
    """
    return render("sentences_page.html", {"title": title, "rows": coloured_rows(maps)})


def coloured_rows(maps: Sequence[AttentionMap]) -> list[dict[str, Any]]:
    """Input of the `sentences` macro of sentences.html."""
    return [_row(each) for each in maps]


def _row(sentence: AttentionMap) -> dict[str, Any]:
    weights = sentence.weights.sum(axis=0).tolist()
    most = max(weights, default=0.0)
    tokens = [
        {
            "text": visible(token),
            "shade": f"{weight / most if most > 0 else 0:.2f}",
            "says": f"{visible(token)}: {weight:.3f}",
        }
        for token, weight in zip(sentence.source_tokens, weights, strict=True)
    ]
    return {"title": sentence.title, "most": f"{most:.2f}", "tokens": tokens}
