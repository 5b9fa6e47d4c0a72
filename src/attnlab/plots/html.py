"""Rendering of offline HTML pages: escaped templates, visible tokens, and embedded glyphs.

Machines without fonts for Hangul, kana and kanji show empty boxes, so a page carries the glyphs
that it needs.
"""

from __future__ import annotations

import base64
import logging
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from typing import Any

from fontTools import subset  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from attnlab.plots.fonts import DEJAVU, HANGUL, KANA, characters, font_files

# Names for `font-family`, and the fonts they are cut from. Every browser draws the characters of
# DejaVu Sans.
_FACES = {"attnlab kana": KANA, "attnlab hangul": HANGUL}

# It logs every table that it drops from a font.
logging.getLogger("fontTools").setLevel(logging.WARNING)


# Surrogates, and control characters except white space.
_UNFIT = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def render(template: str, content: Mapping[str, Any], package: str = "attnlab.plots") -> str:
    """A complete page with the glyphs it needs. It declares UTF-8.

    template: in the folder of `package`; it may extend and import those of `attnlab.plots`.
    """
    page = _environment(package, "attnlab.plots").get_template(template)
    # The fonts depend on all characters of the page, so it is rendered once without them.
    return page.render(**content, font_faces=font_face_rules(page.render(**content, font_faces="")))


def inline_png(png: bytes) -> str:
    """The address of an image that lies inside the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


@cache
def _environment(*packages: str) -> Environment:
    """Jinja with escaping on, over the templates that lie in `packages`."""
    loader = ChoiceLoader([PackageLoader(package, package_path="") for package in packages])
    # A misspelt name in a template is an error.
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_fit_for_a_page,
    )


def _fit_for_a_page(value: Any) -> Any:
    """Text with code points in place of surrogates, which cannot be encoded, and control
    characters.
    """
    if not isinstance(value, str) or not _UNFIT.search(value):
        return value
    # Of the same type: it may be Markup.
    return type(value)(_UNFIT.sub(lambda found: f"U+{ord(found[0]):04X}", value))


def visible(token: str) -> str:
    """A token with its invisible control and format characters as code points.

    Joiners stay: emoji and Indic scripts need them.
    """
    shown = (
        f"U+{ord(character):04X}"
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and character not in "\u200c\u200d"
        else "␣" * (character == " ") or character
        for character in unicodedata.normalize("NFC", token)
    )
    return "".join(shown) or "∅"


def font_face_rules(text: str) -> Markup:
    """`@font-face` rules for a style element: `attnlab kana` and `attnlab hangul` with the glyphs
    of `text`.

    Put them first in `font-family`; `unicode-range` limits them to these characters. (Chromium
    keeps drawing boxes where they come last.) Empty where the text needs no such glyph. The same
    text gives the same bytes.
    """
    files = font_files()
    wanted = {ord(character) for character in text if character != "\n"} - characters(DEJAVU)
    rules = []
    for name, family in _FACES.items():
        points = wanted & characters(family)
        if points:
            data = base64.b64encode(_cut(str(files[family]), frozenset(points))).decode("ascii")
            source = f"url(data:font/woff;base64,{data}) format('woff')"
            covered = ", ".join(f"U+{point:X}" for point in sorted(points))
            rules.append(
                f"@font-face {{ font-family: '{name}'; src: {source}; unicode-range: {covered}; }}"
            )
        wanted -= points
    return Markup("\n".join(rules))  # base64 and our own names: nothing to escape


def _cut(path: str, points: frozenset[int]) -> bytes:
    """The font reduced to these characters, as WOFF."""
    options = subset.Options()
    options.flavor = "woff"
    options.layout_features = []
    options.hinting = False
    options.notdef_outline = True
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "TSI0", "TSI1", "TSI2", "TSI3", "TSI5"]
    # Otherwise the file contains the current time.
    font = TTFont(path, recalcTimestamp=False)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=sorted(points))
    cutter.subset(font)
    font.flavor = "woff"
    stream = BytesIO()
    font.save(stream)
    return stream.getvalue()
