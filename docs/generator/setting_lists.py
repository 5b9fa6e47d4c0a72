"""Docstrings: the lines `name: meaning` of a class or function become a list.

An extension of griffe, which reads the docstrings of the API's pages.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

_ENTRY = re.compile(r"(\w+(?:, \w+)*): (\S.*)")


class SettingLists(Extension):
    """Writes the lists of every docstring as Markdown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        docstring: Docstring | None = obj.docstring
        if docstring is not None:
            docstring.value = with_lists(docstring.value)


def with_lists(text: str) -> str:
    """A docstring in which each paragraph of entries, after the first one, is a Markdown list."""
    summary, *others = text.split("\n\n")
    return "\n\n".join([summary, *map(_with_list, others)])


def _with_list(paragraph: str) -> str:
    lines = paragraph.split("\n")
    if not _ENTRY.fullmatch(lines[0]):
        return paragraph
    items: list[str] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry:
            names = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            items.append(f"- {names}: {entry[2]}")
        else:
            items.append(f"    {line.strip()}")
    return "\n".join(items)
