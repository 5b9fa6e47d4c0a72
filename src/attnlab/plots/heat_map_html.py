"""Attention maps as one HTML page: no network, no script, values on hover, every token escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.embedded_fonts import font_face_rules

# A right-to-left token must not turn what follows it: first-strong isolate, and its end.
_ISOLATE, _END = "\u2068", "\u2069"
# Half characters, and control characters but for white space.
_UNFIT = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def heat_map_html(maps: Sequence[AttentionMap], title: str = "Attention") -> str:
    """A complete page with all maps. To be saved as UTF-8, which it declares.

    It works in a sandboxed frame: the values are shown by style rules alone.
    """
    page = environment("attnlab.plots").get_template("heat_map_page.html")
    tables = heat_map_tables(maps)
    texts = [title, *(text for attention in maps for text in _texts(attention))]
    return page.render(title=title, tables=tables, font_faces=font_face_rules("".join(texts)))


def heat_map_tables(maps: Sequence[AttentionMap]) -> list[dict[str, Any]]:
    """What the `maps` macro of heat_map.html draws."""
    return [_table(attention) for attention in maps]


@cache
def environment(*packages: str) -> Environment:
    """Jinja with escaping on, over the templates that lie in `packages`."""
    loader = ChoiceLoader([PackageLoader(package, package_path="") for package in packages])
    # A misspelt name in a template is an error, not an empty place.
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_fit_for_a_page
    )


def _fit_for_a_page(value: Any) -> Any:
    """Text without what no page can hold: half characters cannot be written, zero characters not be read again."""
    if not isinstance(value, str) or not _UNFIT.search(value):
        return value
    # Of the same type, for some of it is HTML of a template.
    return type(value)(_UNFIT.sub(lambda found: f"U+{ord(found[0]):04X}", value))


def visible(token: str) -> str:
    """A token for a page: control and format characters, which would not show, by their code points.

    Joiners stay: emoji and Indic scripts are written with them.
    """
    shown = (
        f"U+{ord(character):04X}"
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200c\u200d"
        else "␣" * (character == " ") or character
        for character in unicodedata.normalize("NFC", token)
    )
    return "".join(shown) or "∅"


def _texts(attention: AttentionMap) -> list[str]:
    return [attention.title, *map(visible, attention.source_tokens), *map(visible, attention.target_tokens)]


def _table(attention: AttentionMap) -> dict[str, Any]:
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
