"""Attention maps as heat maps, and as sentences coloured by attention: in figures and in HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.figure import INK, label_text, new_figure, title_text
from attnlab.plots.fonts import font_families
from attnlab.plots.html import render, visible

_CELL = 0.34  # inches; shrinks where the picture would grow over _LIMIT
_LIMIT = 24.0
_CELLS_WITH_NUMBERS = 14  # on the longer side
_BETWEEN_CELLS = "#d0d7de"


def heat_map(attention: AttentionMap) -> Figure:
    """Figure of one sentence: cell (column s, row t) is centred on (s, t), from white at 0 to dark
    blue at 1.

    The scale is fixed, so that pictures can be compared. Short sentences carry the values (in
    hundredths) in
    their cells. A character without a font is written as its code point.
    """
    rows, columns = attention.weights.shape
    cell = min(_CELL, _LIMIT / max(rows, columns, 1))
    font_size = max(3.0, min(10.0, 72 * cell * 0.62))
    source = [label_text(token) for token in attention.source_tokens]
    target = [label_text(token) for token in attention.target_tokens]
    longest_source = max(map(len, source), default=0)
    label_inches = font_size / 72 * 0.9

    width = max(3.2, columns * cell + max(map(len, target), default=0) * label_inches + 1.3)
    height = max(1.8, rows * cell + longest_source * label_inches + 0.8)
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    if attention.title:
        # About 11 characters of this size to the inch. matplotlib's own wrapping reads `$` as
        # mathematics.
        lines = textwrap.wrap(
            title_text(attention.title), max(20, int(11 * width)), max_lines=4, placeholder=" …"
        )
        figure.suptitle("\n".join(lines), fontsize=10, color=INK, x=0.01, ha="left")

    image = axes.imshow(
        attention.weights, cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="equal"
    )
    axes.xaxis.tick_top()
    axes.set_xticks(range(columns), source, rotation=90, fontsize=font_size)
    for label in axes.get_xticklabels():
        if len(label.get_text()) == 1:
            label.set_rotation(0)
    axes.set_yticks(range(rows), target, fontsize=font_size)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_color("#8c959f")
    # Thin lines between the cells lead the eye from a token to its cell.
    between_columns = [column - 0.5 for column in range(1, columns)]
    between_rows = [row - 0.5 for row in range(1, rows)]
    axes.vlines(between_columns, -0.5, rows - 0.5, colors=_BETWEEN_CELLS, linewidth=0.4)
    axes.hlines(between_rows, -0.5, columns - 0.5, colors=_BETWEEN_CELLS, linewidth=0.4)

    if max(rows, columns) <= _CELLS_WITH_NUMBERS:
        for row in range(rows):
            for column in range(columns):
                weight = float(attention.weights[row, column])
                if weight >= 0.005:
                    text = f"{100 * weight:.0f}"
                    colour = "white" if weight > 0.55 else INK
                    number = axes.text(
                        column, row, text, ha="center", va="center", fontsize=7, color=colour
                    )
                    # It lies inside its cell; the layout would measure it several times
                    number.set_in_layout(False)
    bar = figure.colorbar(
        image, ax=axes, fraction=0.05, pad=0.02, shrink=min(1.0, 3.0 / (rows * cell))
    )
    bar.ax.tick_params(labelsize=7, colors=INK)
    bar.outline.set_linewidth(0.4)
    return figure


# A right-to-left token must not reverse the text after it: first-strong isolate, and its end.
_ISOLATE, _END = "\u2068", "\u2069"


def heat_map_html(maps: Sequence[AttentionMap], title: str | None = "Attention") -> str:
    """A complete page with all maps, without scripts: style rules show the values. None leaves
    title and legend out.
    """
    return render(
        "heat_map_page.html", {"title": title, "tables": [heat_map_table(each) for each in maps]}
    )


def heat_map_table(attention: AttentionMap) -> dict[str, Any]:
    """A map for the `maps` macro of heat_map.html."""
    source = [visible(token) for token in attention.source_tokens]
    rows = []
    for token, weights in zip(attention.target_tokens, attention.weights.tolist(), strict=True):
        target = visible(token)
        cells = [
            {
                "shade": f"{min(weight, 1.0):.2f}",
                "says": f"{_ISOLATE}{target}{_END} ← {_ISOLATE}{column}{_END}: {weight:.3f}",
            }
            for column, weight in zip(source, weights, strict=True)
        ]
        rows.append({"token": target, "cells": cells})
    return {"title": attention.title, "source": source, "rows": rows}


_WIDTH, _MARGIN = 9.0, 0.15  # inches
_PAD = 3.0  # points around a token
# inches: heights of a line of tokens, of a caption, between sentences
_LINE, _CAPTION, _BETWEEN = 0.30, 0.26, 0.16
_FONT = 11  # points


def coloured_sentences(maps: Sequence[AttentionMap]) -> Figure:
    """Figure of sentences, each below its title, with as many lines as it needs.

    maps: of one row each. Colours are relative to a sentence's strongest token, whose weight stands
        beside the
        title: the weights of a long sentence are too small for a scale from 0 to 1.
    """
    ruler = new_figure(_WIDTH, 1)
    # Inches from the left and from above, text, style
    placed: list[tuple[float, float, str, dict[str, Any]]] = []
    top = _MARGIN
    for each in maps:
        most = float(each.weights.max(initial=0.0))
        caption = f"{title_text(each.title, 90)}   (darkest: {most:.2f})"
        placed.append((_MARGIN, top + _CAPTION / 2, caption, {"fontsize": 9, "color": "#57606a"}))
        left, top = _MARGIN, top + _CAPTION
        for token, weight in zip(
            each.source_tokens, each.weights.sum(axis=0).tolist(), strict=True
        ):
            text = label_text(token, 40)
            width = _text_width(text, ruler) + 3 * _PAD / 72
            if left + width > _WIDTH - _MARGIN and left > _MARGIN:
                left, top = _MARGIN, top + _LINE
            share = weight / most if most > 0 else 0.0
            # Without the darkest blues, on which text is unreadable.
            ground = {
                "facecolor": matplotlib.colormaps["Blues"](0.8 * share),
                "linewidth": 0,
                "pad": _PAD,
            }
            style = {"fontsize": _FONT, "color": "white" if share > 0.75 else INK, "bbox": ground}
            placed.append((left + _PAD / 72, top + _LINE / 2, text, style))
            left += width
        top += _LINE + _BETWEEN
    figure = new_figure(_WIDTH, top + _MARGIN)
    figure.set_layout_engine("none")  # places are in inches here
    if not maps:
        placed = [(_MARGIN, _MARGIN, "no sentences", {"fontsize": _FONT})]
    for x, y, text, options in placed:
        figure.text(x / _WIDTH, 1 - y / (top + _MARGIN), text, va="center_baseline", **options)
    return figure


def _text_width(text: str, ruler: Figure) -> float:
    """Inches, as a figure of the ruler's resolution draws it."""
    drawn = ruler.text(
        0, 0, text, fontsize=_FONT, fontfamily=list(font_families()), parse_math=False
    )
    width = drawn.get_window_extent().width / ruler.dpi
    drawn.remove()
    return width


def sentences_html(maps: Sequence[AttentionMap], title: str | None = "Attention") -> str:
    """A complete page with all sentences, without scripts: style rules show the weights.

    maps: of one row each; see `coloured_sentences`.
    title: None leaves title and legend out.
    """
    return render(
        "sentences_page.html", {"title": title, "rows": [coloured_row(each) for each in maps]}
    )


def coloured_row(sentence: AttentionMap) -> dict[str, Any]:
    """A sentence for the `sentences` macro of sentences.html."""
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
