"""Navigation: what stands for all pages of a folder, in mkdocs.yml and on pages.

A hook of MkDocs. In the navigation, `folder/*` stands for the folder's pages that are named nowhere
else; an entry or section without a page is left out. On a page, the line

    <!-- pages: folder, Heading -->

stands for the heading and a list of the folder's other pages, but for those that have the name of
the site. Pages stand in the order of their file
names, an `index.md` or `README.md` first.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_LIST = re.compile(r"^<!-- pages: (?P<folder>[\w/]+), (?P<heading>.+) -->$", re.MULTILINE)
_FIRST = ("/index.md", "/README.md")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Write the folders of the navigation out."""
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = expanded(config.nav or [], pages)
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files, **_: object
) -> str:
    """Write the lists of a page out."""
    titles = {
        file.src_uri: _title(file.content_string)
        for file in files.documentation_pages()
        if file.src_uri != page.file.src_uri
    }
    listed = [name for name, title in titles.items() if title != config.site_name]

    def write(line: re.Match[str]) -> str:
        names = in_order(f"{line['folder']}/*", listed)
        if not names:
            return ""
        items = [f"- [{titles[name]}]({_from(page, name)})" for name in names]
        return "\n".join([f"## {line['heading']}", "", *items])

    return _LIST.sub(write, markdown)


def expanded(nav: list[Any], pages: list[str]) -> list[Any]:
    """The entries of a navigation, with pages in place of patterns."""
    named = _named(nav, pages)
    return _expanded(nav, pages, [page for page in pages if page not in named])


def _expanded(nav: list[Any], pages: list[str], others: list[str]) -> list[Any]:
    """As `expanded`; `others` have no place of their own."""
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, str):
            entries += in_order(entry, others) if entry.endswith("*") else [entry]
            continue
        [(title, value)] = entry.items()
        if isinstance(value, list):
            value = _expanded(value, pages, others)
        elif value.endswith("*"):
            value = next(iter(in_order(value, pages)), None)
        if value:
            entries.append({title: value})
    return entries


def in_order(pattern: str, pages: list[str]) -> list[str]:
    """The pages that a pattern names, but for those in deeper folders."""
    depth = pattern.count("/")
    found = [page for page in pages if fnmatch(page, pattern) and page.count("/") == depth]
    return sorted(found, key=lambda page: (not page.endswith(_FIRST), page))


def _named(nav: list[Any], pages: list[str]) -> set[str]:
    """The pages that a navigation gives a place of their own."""
    found: set[str] = set()
    for entry in nav:
        if isinstance(entry, str):
            found.add(entry)
            continue
        [value] = entry.values()
        if isinstance(value, list):
            found |= _named(value, pages)
        else:
            found.update(in_order(value, pages)[:1])
    return found


def _title(text: str) -> str:
    heading = _TITLE.search(text)
    return heading[1] if heading else ""


def _from(page: Page, name: str) -> str:
    return os.path.relpath(name, PurePosixPath(page.file.src_uri).parent)
