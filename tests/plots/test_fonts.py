"""No empty boxes: every character is drawn by some font, or written as its code point."""

from __future__ import annotations

import base64
import re
from io import BytesIO

import matplotlib
import pytest
from fontTools.ttLib import TTFont

from attnlab.plots.fonts import drawable, font_families
from attnlab.plots.html import font_face_rules


@pytest.mark.parametrize(
    "text",
    [
        "나는뷁힣ㄱㅎ",
        "ひらがなカタカナー",
        "日本語漢字",
        "äöüßÄÖÜéñøł",
        "Привет",
        "Ελληνικά",
        "שלום",
        "مرحبا",
        "␣…→",
        "😀",
    ],
)
def test_fonts_cover_common_scripts(text: str) -> None:
    assert drawable(text) == text


def test_drawable_writes_characters_missing_from_all_fonts_as_code_points() -> None:
    assert drawable("a🧑bไ") == "aU+1F9D1bU+0E44"
    assert drawable("\u200d\u202e\x00\ue000") == "U+200DU+202EU+0000U+E000"
    assert drawable("a b\nc\t") == "a␣b↵c⇥"
    # Hangul in pieces, as some file systems and corpora have it
    assert drawable("\u1112\u1161\u11ab") == "한"


def test_font_families_leave_matplotlib_settings_unchanged() -> None:
    before = dict(matplotlib.rcParams)
    assert len(font_families()) == 3
    assert dict(matplotlib.rcParams) == before


def test_font_face_rules_embed_only_the_needed_glyphs() -> None:
    rules = font_face_rules("abc 나는 カ 日")
    fonts = {}
    for name, data in re.findall(
        r"font-family: '([^']+)'; src: url\(data:font/woff;base64,([^)]+)\)", rules
    ):
        fonts[name] = set(TTFont(BytesIO(base64.b64decode(data))).getBestCmap())
    assert fonts == {"attnlab kana": set(map(ord, "カ日")), "attnlab hangul": set(map(ord, "나는"))}
    assert rules == font_face_rules("日 abc カ 나는")
    assert len(rules) < 20_000
    assert font_face_rules("only Latin, ü and Привет") == ""
