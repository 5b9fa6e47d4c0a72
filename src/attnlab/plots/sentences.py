"""Sentences coloured by attention: figures and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.figure import INK, label_text, new_figure, title_text
from attnlab.plots.fonts import font_families
from attnlab.plots.html import render
from attnlab.plots.labels import visible

_POINTS = 72  # an inch


# In inches.
_WIDTH = 9.0
_MARGIN = 0.15
_LINE_HEIGHT = 0.30
_CAPTION_HEIGHT = 0.26
_GAP = 0.16  # between sentences

# In points.
_TOKEN_PADDING = 3.0
_FONT_SIZE = 11


@dataclass(frozen=True)
class _PlacedText:
    """A text at a place in inches from the left and from above, and how it is drawn."""

    left: float
    top: float
    text: str
    style: dict[str, Any]


def coloured_sentences(maps: Sequence[AttentionMap]) -> Figure:
    """Figure of sentences, each below its title, with as many lines as it needs.

    maps: of one row each. Colours are relative to a sentence's strongest token, whose weight stands
        beside the title: the weights of a long sentence are too small for a scale from 0 to 1. The
        colour of a negative weight is that of its size.
    """
    texts: list[_PlacedText] = []
    top = _MARGIN
    ruler = new_figure(_WIDTH, 1)
    for sentence in maps:
        placed, top = _place_sentence(sentence, top, ruler)
        texts += placed
        top += _GAP
    if not maps:
        texts = [_PlacedText(_MARGIN, _MARGIN, "no sentences", {"fontsize": _FONT_SIZE})]

    height = top + _MARGIN
    figure = new_figure(_WIDTH, height)
    figure.set_layout_engine("none")  # places are in inches here
    for placed_text in texts:
        figure.text(
            placed_text.left / _WIDTH,
            1 - placed_text.top / height,
            placed_text.text,
            va="center_baseline",
            **placed_text.style,
        )
    return figure


def _place_sentence(
    sentence: AttentionMap, top: float, ruler: Figure
) -> tuple[list[_PlacedText], float]:
    """The caption and the tokens of a sentence that begins at `top`, and where it ends."""
    highest_weight = float(abs(sentence.weights).max(initial=0.0))
    caption = f"{title_text(sentence.title, 90)}   (darkest: {highest_weight:.2f})"
    caption_style = {"fontsize": 9, "color": "#57606a"}
    placed = [_PlacedText(_MARGIN, top + _CAPTION_HEIGHT / 2, caption, caption_style)]
    top += _CAPTION_HEIGHT

    left = _MARGIN
    padding = _TOKEN_PADDING / _POINTS
    weights = sentence.weights.sum(axis=0).tolist()
    for token, weight in zip(sentence.source_tokens, weights, strict=True):
        text = label_text(token, 40)
        width = _text_width(text, ruler) + 3 * padding
        is_first = left == _MARGIN
        if left + width > _WIDTH - _MARGIN and not is_first:
            left = _MARGIN
            top += _LINE_HEIGHT
        share = abs(weight) / highest_weight if highest_weight > 0 else 0.0
        place = (left + padding, top + _LINE_HEIGHT / 2)
        placed.append(_PlacedText(*place, text, _token_style(share)))
        left += width
    return placed, top + _LINE_HEIGHT


def _token_style(share: float) -> dict[str, Any]:
    """How a token is drawn whose weight is this share of the highest one."""
    background = {
        # Without the darkest blues, on which text is unreadable.
        "facecolor": matplotlib.colormaps["Blues"](0.8 * share),
        "linewidth": 0,
        "pad": _TOKEN_PADDING,
    }
    return {"fontsize": _FONT_SIZE, "color": "white" if share > 0.75 else INK, "bbox": background}


def _text_width(text: str, ruler: Figure) -> float:
    """Inches, as a figure of the ruler's resolution draws it."""
    drawn = ruler.text(
        0, 0, text, fontsize=_FONT_SIZE, fontfamily=list(font_families()), parse_math=False
    )
    width = drawn.get_window_extent().width / ruler.dpi
    drawn.remove()
    return width


def sentences_html(maps: Sequence[AttentionMap], title: str | None = "Attention") -> str:
    """A complete page with all sentences, without scripts: style rules show the weights.

    maps: of one row each; see `coloured_sentences`.
    title: None leaves title and legend out.
    """
    rows = [coloured_row(sentence) for sentence in maps]
    return render("sentences_page.html", {"title": title, "rows": rows})


def coloured_row(sentence: AttentionMap) -> dict[str, Any]:
    """A sentence for the `sentences` macro of sentences.html."""
    weights = sentence.weights.sum(axis=0).tolist()
    highest_weight = max(map(abs, weights), default=0.0)
    tokens = []
    for token, weight in zip(sentence.source_tokens, weights, strict=True):
        text = visible(token)
        share = abs(weight) / highest_weight if highest_weight > 0 else 0.0
        tokens.append({"text": text, "shade": f"{share:.2f}", "tooltip": f"{text}: {weight:.3f}"})
    return {"title": sentence.title, "most": f"{highest_weight:.2f}", "tokens": tokens}
