"""Languages: what a page is written in, and the same page in the other language.

A hook of MkDocs. Korean pages lie in a folder `ko` and have the name of their English twin:
`ko/explorer.md` beside `explorer.md`, `course/ko/01.md` beside `course/en/01.md`. The menu in the
header leads to the twin, or to the home page of the other language where there is none.
"""

from __future__ import annotations

import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

NAMES = {"en": "English", "ko": "한국어"}
_SEARCH = {"en": "Search the docs", "ko": "문서 검색"}
_HOMES = {"en": "index.md", "ko": "ko/index.md"}


def on_page_context(
    context: dict[str, Any], page: Page, config: MkDocsConfig, **_: object
) -> dict[str, Any]:
    """Give the theme the page's language, and the menu its links."""
    files: Files = config.extra["files"]
    config.theme["language"] = language_of(page.file.src_uri)
    links = []
    for language, name in NAMES.items():
        twin = files.get_file_from_path(twin_of(page.file.src_uri, language))
        target = twin or files.get_file_from_path(_HOMES[language])
        if target is not None:
            links.append({"lang": language, "name": name, "link": target.url})
    config.extra["alternate"] = links
    return context


def on_nav(nav: Any, files: Files, config: MkDocsConfig, **_: object) -> Any:
    """Keep the files for the menu of each page."""
    config.extra["files"] = files
    return nav


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Drop the links for crawlers, for which the theme asks for a sitemap; name the search."""
    name = _SEARCH[language_of(page.file.src_uri)]
    output = output.replace('role="dialog">', f'role="dialog" aria-label="{name}">', 1)
    # A section "Search" of a page has a list of contents of this name.
    options = r'(class="md-search__options" aria-label=)"[^"]*"'
    output = re.sub(options, rf'\1"{name}"', output)
    return re.sub(r'\s*<link rel="alternate"[^>]*>', "", output)


def language_of(page: str) -> str:
    """The language of a page, by its place in the site."""
    return "ko" if page.startswith(("ko/", "course/ko/")) else "en"


def twin_of(page: str, language: str) -> str:
    """The place of the same page in a language."""
    if language == language_of(page):
        return page
    if page.startswith("course/"):
        return re.sub("^course/../", f"course/{language}/", page)
    return f"ko/{page}" if language == "ko" else page.removeprefix("ko/")
