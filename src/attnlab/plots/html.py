"""Rendering of offline HTML pages: escaped templates and embedded glyphs.

Machines without fonts for Hangul, kana and kanji show empty boxes, so a page carries the glyphs
that it needs.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from typing import Any

from fontTools import subset  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from attnlab.plots.colour_scale import LEVELS
from attnlab.plots.fonts import DEJAVU, HANGUL, KANA, characters, font_files
from attnlab.plots.heat_map_css import heat_map_css

# Names for `font-family`, and the fonts they are cut from. Every browser draws the characters of
# DejaVu Sans.
_FACES = {"attnlab kana": KANA, "attnlab hangul": HANGUL}

# fontTools logs every table that it drops from a font.
logging.getLogger("fontTools").setLevel(logging.WARNING)

# Surrogates, and control characters except white space.
_NOT_FOR_HTML = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def render(template: str, content: Mapping[str, Any], *packages: str) -> str:
    """A complete page with the glyphs it needs. It declares UTF-8.

    template: in the folder of the first of `packages` that has it; it may extend and import those
        of the others and of `attnlab.plots`.
    """
    page = _environment(*packages, "attnlab.plots").get_template(template)
    # The fonts depend on all characters of the page, so it is rendered once without them.
    without_fonts = page.render(**content, font_faces="")
    return page.render(**content, font_faces=font_face_rules(without_fonts))


def inline_png(png: bytes) -> str:
    """The address of an image that lies inside the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


@cache
def _environment(*packages: str) -> Environment:
    """Jinja with escaping on, over the templates that lie in `packages`."""
    loader = ChoiceLoader([PackageLoader(package, package_path="") for package in packages])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,  # a misspelt name in a template is an error
        trim_blocks=True,
        finalize=_without_control_characters,
    )
    environment.globals["heat_map_css"] = Markup(heat_map_css())  # our own file: nothing to escape
    environment.globals["heat_levels"] = LEVELS
    return environment


def _without_control_characters(value: Any) -> Any:
    """Text with code points in place of control characters and of surrogates.

    Surrogates cannot be encoded.
    """
    if not isinstance(value, str) or not _NOT_FOR_HTML.search(value):
        return value
    # Of the same type: it may be Markup.
    return type(value)(_NOT_FOR_HTML.sub(lambda found: f"U+{ord(found[0]):04X}", value))


def font_face_rules(text: str) -> Markup:
    """`@font-face` rules for a style element, with the glyphs of `text`.

    The families are `attnlab kana` and `attnlab hangul`. Put them first in `font-family`;
    `unicode-range` limits them to these characters. (Chromium keeps drawing boxes where they come
    last.) Empty where the text needs no such glyph. The same text gives the same bytes.
    """
    files = font_files()
    missing = {ord(character) for character in text if character != "\n"} - characters(DEJAVU)
    rules = []
    for name, family in _FACES.items():
        points = missing & characters(family)
        if not points:
            continue
        missing -= points
        font = _subset_font(str(files[family]), frozenset(points))
        data = base64.b64encode(font).decode("ascii")
        source = f"url(data:font/woff;base64,{data}) format('woff')"
        covered = ", ".join(f"U+{point:X}" for point in sorted(points))
        rules.append(
            f"@font-face {{ font-family: '{name}'; src: {source}; unicode-range: {covered}; }}"
        )
    return Markup("\n".join(rules))  # base64 and our own names: nothing to escape


def _subset_font(path: str, points: frozenset[int]) -> bytes:
    """The font reduced to these code points, as WOFF."""
    options = subset.Options()
    options.flavor = "woff"
    options.layout_features = []
    options.hinting = False
    options.notdef_outline = True
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "TSI0", "TSI1", "TSI2", "TSI3", "TSI5"]
    # Otherwise the file contains the current time.
    font = TTFont(path, recalcTimestamp=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=sorted(points))
    subsetter.subset(font)
    font.flavor = "woff"
    stream = BytesIO()
    font.save(stream)
    return stream.getvalue()
