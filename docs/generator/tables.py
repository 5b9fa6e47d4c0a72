"""Tables: places where long names in code may break, so that other columns keep their width.

A hook of MkDocs.
"""

from __future__ import annotations

import re

_CODE_IN_CELL = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_AFTER = re.compile(r"(?<=\w)([/=_.,])(?=\w)")


def on_page_content(content: str, **_: object) -> str:
    """Let code in a cell break after a separator within a name."""
    return _CELL.sub(lambda cell: _CODE_IN_CELL.sub(_with_breaks, cell[0]), content)


def _with_breaks(code: re.Match[str]) -> str:
    return _AFTER.sub(r"\1<wbr>", code[0])
