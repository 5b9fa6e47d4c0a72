"""The few glyphs of Hangul, kana and kanji that a page needs, carried inside it.

A page is read on machines that have no such fonts: without, a browser draws empty boxes there too. Only the
page's own characters are carried, some kilobytes.
"""

from __future__ import annotations

import base64
import logging
from functools import cache
from io import BytesIO

from fontTools import subset  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from markupsafe import Markup

from attnlab.plots.fonts import font_files

# Names for `font-family`, and the fonts they are cut from. What DejaVu Sans has any browser draws.
_FACES = (("attnlab kana", "attnlab IPAexGothic"), ("attnlab hangul", "attnlab NanumGothic"))
_EVERYWHERE = "attnlab DejaVu Sans"

# It logs every table of a font that it drops, which would fill the log of a run.
logging.getLogger("fontTools").setLevel(logging.WARNING)


def font_face_rules(text: str) -> Markup:
    """`@font-face` rules for a style element: `attnlab kana` and `attnlab hangul` with what `text` needs.

    They are to stand first in `font-family`; `unicode-range` keeps them from all other characters. (As the
    last ones they come too late: Chromium keeps the boxes that it drew before it met the font.)
    Empty where the text needs none. The same text gives the same bytes.
    """
    files = font_files()
    wanted = {ord(character) for character in text} - _characters(_EVERYWHERE)
    rules = []
    for name, family in _FACES:
        points = wanted & _characters(family)
        if points:
            data = base64.b64encode(_cut(str(files[family]), frozenset(points))).decode("ascii")
            source = f"url(data:font/woff;base64,{data}) format('woff')"
            covered = ", ".join(f"U+{point:X}" for point in sorted(points))
            rules.append(f"@font-face {{ font-family: '{name}'; src: {source}; unicode-range: {covered}; }}")
        wanted -= points
    return Markup("\n".join(rules))  # base64 and names of ours: nothing to escape


@cache
def _characters(family: str) -> frozenset[int]:
    path = font_files().get(family)
    if path is None:
        return frozenset()
    with TTFont(path, lazy=True) as font:
        return frozenset(font.getBestCmap())


def _cut(path: str, points: frozenset[int]) -> bytes:
    """The font with these characters alone, as WOFF."""
    options = subset.Options()
    options.flavor = "woff"
    options.layout_features = []
    options.hinting = False
    options.notdef_outline = True
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "TSI0", "TSI1", "TSI2", "TSI3", "TSI5"]
    # Without it the file would carry the time of writing.
    font = TTFont(path, recalcTimestamp=False)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=sorted(points))
    cutter.subset(font)
    font.flavor = "woff"
    stream = BytesIO()
    font.save(stream)
    return stream.getvalue()
