"""Fonts for many scripts, and text that is made drawable with them.

DejaVu Sans (Latin, Cyrillic, Greek, Arabic, Hebrew, some emoji) comes with matplotlib, IPAexGothic
(kana, kanji) with matplotlib-fontja and NanumGothic (Hangul) with koreanize-matplotlib. Importing
the last two packages would change matplotlib's defaults, so only their files are used. The fonts
are registered under our own names, because a system font of the same name would change the pictures
from machine to machine.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import matplotlib
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from matplotlib.font_manager import fontManager, get_font, ttfFontProperty

# Families in the order of preference: a glyph comes from the first font that has it.
DEJAVU = "attnlab DejaVu Sans"
KANA = "attnlab IPAexGothic"
HANGUL = "attnlab NanumGothic"

# {family: (package, file)}
_PACKAGED = {
    KANA: ("matplotlib_fontja", "ipaexg.ttf"),
    HANGUL: ("koreanize_matplotlib", "NanumGothic.ttf"),
}

# Invisible characters, with a visible replacement.
_VISIBLE_SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥", "\u3000": "␣", "\xa0": "␣"}


@cache
def font_families() -> tuple[str, ...]:
    """Families for `fontfamily=`, registered with matplotlib on the first call."""
    for family, path in font_files().items():
        entry = replace(ttfFontProperty(get_font(str(path))), name=family)
        if entry not in fontManager.ttflist:
            fontManager.ttflist.append(entry)
    return tuple(font_files())


def drawable(text: str) -> str:
    """`text` made visible: NFC, signs for white space, `U+1F9D1` for characters that no font has.

    matplotlib would draw an empty box for a missing character, and nothing at all for a control
    character.
    """
    shown = []
    for character in unicodedata.normalize("NFC", text):
        # Control and format characters (C), and separators (Z).
        is_invisible = unicodedata.category(character)[0] in "CZ"
        if character in _VISIBLE_SIGNS:
            shown.append(_VISIBLE_SIGNS[character])
        elif ord(character) in _all_characters() and not is_invisible:
            shown.append(character)
        else:
            shown.append(f"U+{ord(character):04X}")
    return "".join(shown)


@cache
def font_files() -> dict[str, Path]:
    """{family: file}, in the order of preference."""
    files = {DEJAVU: Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")}
    for family, (package, name) in _PACKAGED.items():
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        files[family] = Path(spec.origin).parent / "fonts" / name
    return files


@cache
def browser_font(family: str) -> bytes:
    """The file of a font without the source tables of its hints, which browsers refuse."""
    stream = BytesIO()
    with TTFont(font_files()[family], lazy=True, recalcTimestamp=False) as font:
        tags = list(font.keys())
        for tag in tags:
            if tag.startswith("TSI"):
                del font[tag]
        font.save(stream)
    return stream.getvalue()


@cache
def characters(family: str) -> frozenset[int]:
    """Code points that the font has."""
    with TTFont(font_files()[family], lazy=True) as font:
        return frozenset(font.getBestCmap())


@cache
def _all_characters() -> frozenset[int]:
    """Code points that one of the fonts has."""
    return frozenset().union(*map(characters, font_files()))
