"""Markdown as GitHub reads it: what its readers write and Python-Markdown takes otherwise.

A hook of MkDocs. In a table, GitHub wants a pipe within code escaped and shows it without the
backslash; Python-Markdown would show the backslash. And GitHub reads the Markdown within
`<details>`, which Python-Markdown leaves as it is.
"""

from __future__ import annotations

import re

_TABLE_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_DETAILS = re.compile(r"^<details>$", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Unescape the pipes in code, and have folded text read."""
    markdown = _TABLE_ROW.sub(lambda row: _CODE.sub(_unescape, row[0]), markdown)
    return _DETAILS.sub('<details markdown="1">', markdown)


def _unescape(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")
