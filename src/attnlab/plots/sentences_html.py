"""Sentences coloured by attention as one HTML page: no network, no script, weights on hover, every token escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.embedded_fonts import font_face_rules
from attnlab.plots.heat_map_html import environment, visible


def sentences_html(maps: Sequence[AttentionMap], title: str = "Attention") -> str:
    """A complete page with all sentences. To be saved as UTF-8, which it declares.

    maps: of one row each; see `coloured_sentences`. The page works in a sandboxed frame: the weights are shown by
        style rules alone.
    """
    page = environment("attnlab.plots").get_template("sentences_page.html")
    rows = coloured_rows(maps)
    texts = [title, *(row["title"] for row in rows), *(token["text"] for row in rows for token in row["tokens"])]
    return page.render(title=title, rows=rows, font_faces=font_face_rules("".join(texts)))


def coloured_rows(maps: Sequence[AttentionMap]) -> list[dict[str, Any]]:
    """What the `sentences` macro of sentences.html draws."""
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
