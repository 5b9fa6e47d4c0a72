"""Fonts: glyphs for the Korean text of the site, where a machine has no font for it.

A hook of MkDocs. A reader's own Korean font comes first.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

from attnlab.plots.html import font_face_rules

_STYLESHEET = "assets/stylesheets/glyphs.css"  # `extra_css` in mkdocs.yml names it
# Of Apple, Windows and Linux
_OWN_FONTS = ("Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans CJK KR", "Noto Sans KR")

_characters: set[str] = set()


def on_post_page(output: str, **_: object) -> str:
    """Note the characters of a page, and those that its script writes."""
    escaped = re.findall(r"\\u([0-9a-f]{4})", output)
    _characters.update(output, (chr(int(code, base=16)) for code in escaped))
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Write the glyphs of all pages."""
    own = "".join(f"local('{name}'), " for name in _OWN_FONTS)
    rules = str(font_face_rules("".join(sorted(_characters))))
    path = Path(config.site_dir, _STYLESHEET)
    path.write_text(rules.replace("src: url", f"src: {own}url"), encoding="utf-8")
