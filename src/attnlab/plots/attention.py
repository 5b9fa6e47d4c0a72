"""Heat maps of attention, and sentences coloured by attention: figures and HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.figure import INK, label_text, new_figure, title_text
from attnlab.plots.fonts import font_families
from attnlab.plots.html import render, visible

# Of heat maps, in inches. Cells shrink where the picture would become larger than the limit.
_CELL_SIZE = 0.34
_SIZE_LIMIT = 24.0
_MAX_CELLS_WITH_NUMBERS = 14  # on the longer side
_CELL_BORDER = "#d0d7de"
_FRAME = "#8c959f"

_POINTS = 72  # an inch


def heat_map(attention: AttentionMap) -> Figure:
    """Figure of one sentence: cell (column s, row t) is centred on (s, t).

    Colours go from white at 0 to dark blue at 1, on a fixed scale, so that pictures can be
    compared. Short sentences carry the values (in hundredths) in their cells. A character without a
    font is written as its code point.
    """
    rows, columns = attention.weights.shape
    cell = min(_CELL_SIZE, _SIZE_LIMIT / max(rows, columns, 1))
    font_size = max(3.0, min(10.0, _POINTS * cell * 0.62))
    source = [label_text(token) for token in attention.source_tokens]
    target = [label_text(token) for token in attention.target_tokens]

    inches_a_character = font_size / _POINTS * 0.9
    source_inches = max(map(len, source), default=0) * inches_a_character
    target_inches = max(map(len, target), default=0) * inches_a_character
    width = max(3.2, columns * cell + target_inches + 1.3)
    height = max(1.8, rows * cell + source_inches + 0.8)
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    _add_wrapped_title(figure, attention.title, width)

    image = axes.imshow(
        attention.weights, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="equal"
    )
    _add_tokens(axes, source, target, font_size)
    _add_cell_borders(axes, rows, columns)
    if max(rows, columns) <= _MAX_CELLS_WITH_NUMBERS:
        _add_weights(axes, attention)

    shrink = min(1.0, 3.0 / (rows * cell))  # three inches suffice for the scale
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, shrink=shrink)
    bar.ax.tick_params(labelsize=7, colors=INK)
    bar.outline.set_linewidth(0.4)
    return figure


def _add_wrapped_title(figure: Figure, title: str, width: float) -> None:
    """A title in lines as wide as the figure, whose width is in inches."""
    if not title:
        return
    # About 11 characters of this size to the inch. matplotlib's own wrapping reads `$` as
    # mathematics.
    characters = max(20, int(11 * width))
    lines = textwrap.wrap(title_text(title), characters, max_lines=4, placeholder=" …")
    figure.suptitle("\n".join(lines), fontsize=10, color=INK, x=0.01, ha="left")


def _add_tokens(axes: Axes, source: Sequence[str], target: Sequence[str], font_size: float) -> None:
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source)), source, rotation=90, fontsize=font_size)
    for label in axes.get_xticklabels():
        if len(label.get_text()) == 1:
            label.set_rotation(0)
    axes.set_yticks(range(len(target)), target, fontsize=font_size)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color(_FRAME)


def _add_cell_borders(axes: Axes, rows: int, columns: int) -> None:
    """Thin lines between the cells, which lead the eye from a token to its cell."""
    between_columns = [column - 0.5 for column in range(1, columns)]
    between_rows = [row - 0.5 for row in range(1, rows)]
    axes.vlines(between_columns, -0.5, rows - 0.5, colors=_CELL_BORDER, linewidth=0.4)
    axes.hlines(between_rows, -0.5, columns - 0.5, colors=_CELL_BORDER, linewidth=0.4)


def _add_weights(axes: Axes, attention: AttentionMap) -> None:
    """The weights in hundredths in their cells, without those that round to 0."""
    rows, columns = attention.weights.shape
    for row in range(rows):
        for column in range(columns):
            weight = float(attention.weights[row, column])
            if weight < 0.005:
                continue
            number = axes.text(
                column,
                row,
                f"{100 * weight:.0f}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if weight > 0.55 else INK,
            )
            # It lies inside its cell; the layout would measure it several times.
            number.set_in_layout(False)


# A right-to-left token must not reverse the text after it: first-strong isolate, and its end.
_ISOLATE, _END = "\u2068", "\u2069"


def heat_map_html(maps: Sequence[AttentionMap], title: str | None = "Attention") -> str:
    """A complete page with all maps, without scripts: style rules show the values.

    title: None leaves title and legend out.
    """
    tables = [heat_map_table(attention) for attention in maps]
    return render("heat_map_page.html", {"title": title, "tables": tables})


def heat_map_table(attention: AttentionMap) -> dict[str, Any]:
    """A map for the `maps` macro of heat_map.html."""
    source = [visible(token) for token in attention.source_tokens]
    rows = []
    for token, weights in zip(attention.target_tokens, attention.weights.tolist(), strict=True):
        target = visible(token)
        cells = []
        for column, weight in zip(source, weights, strict=True):
            tooltip = f"{_ISOLATE}{target}{_END} ← {_ISOLATE}{column}{_END}: {weight:.3f}"
            cells.append({"shade": f"{min(weight, 1.0):.2f}", "tooltip": tooltip})
        rows.append({"token": target, "cells": cells})
    return {"title": attention.title, "source": source, "rows": rows}


# Of coloured sentences: inches.
_WIDTH = 9.0
_MARGIN = 0.15
_LINE_HEIGHT = 0.30
_CAPTION_HEIGHT = 0.26
_GAP = 0.16  # between sentences

# Of coloured sentences: points.
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
        beside the title: the weights of a long sentence are too small for a scale from 0 to 1.
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
    highest_weight = float(sentence.weights.max(initial=0.0))
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
        share = weight / highest_weight if highest_weight > 0 else 0.0
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
    highest_weight = max(weights, default=0.0)
    tokens = []
    for token, weight in zip(sentence.source_tokens, weights, strict=True):
        text = visible(token)
        share = weight / highest_weight if highest_weight > 0 else 0.0
        tokens.append({"text": text, "shade": f"{share:.2f}", "tooltip": f"{text}: {weight:.3f}"})
    return {"title": sentence.title, "most": f"{highest_weight:.2f}", "tokens": tokens}
