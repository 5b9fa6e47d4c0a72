"""Markdown as GitHub reads it: what its readers write and Python-Markdown takes otherwise.

A hook of MkDocs. In a table, GitHub wants a pipe within code escaped and shows it without the
backslash; Python-Markdown would show the backslash.
"""

from __future__ import annotations

import re

_TABLE_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Unescape the pipes in code."""
    return _TABLE_ROW.sub(lambda row: _CODE.sub(_unescape, row[0]), markdown)


def _unescape(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")
