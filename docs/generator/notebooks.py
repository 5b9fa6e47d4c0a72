"""Notebooks: each .ipynb file becomes a page with the outputs that it was saved with.

A hook of MkDocs. It runs no notebook: tests/test_docs_code.py does. Links to a notebook lead to its
page, which offers the file itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_DOWNLOAD = '[Download this notebook]({name}){{ download="{name}" }}\n'
_FRAME = "output of the cell above"
_TO_NOTEBOOK = re.compile(r"(?<=\]\()([^)\s:]+)\.ipynb(?=\))")
_PLACE = re.compile(r'<div class="output" data-output="(\d+)"></div>')

# {page: the markup of its outputs}, which joins the page as HTML, past Markdown.
_outputs: dict[str, list[str]] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook."""
    notebooks = [file for file in files if file.src_uri.endswith(".ipynb")]
    for file in notebooks:
        path = PurePosixPath(file.src_uri)
        text, outputs = page_of(json.loads(file.content_string))
        page = File.generated(
            config,
            str(path.with_suffix(".md")),
            content=text + _DOWNLOAD.format(name=path.name),
        )
        files.append(page)
        _outputs[page.src_uri] = outputs
    return files


@event_priority(-50)  # after links from the root have become links from docs/
def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links to notebooks lead to their pages."""
    if page.file.src_uri in _outputs:  # its one link to a notebook offers the file
        return markdown
    return _TO_NOTEBOOK.sub(r"\1.md", markdown)


def on_page_content(content: str, page: Page, **_: object) -> str:
    """Put the outputs in their places."""
    outputs = _outputs.get(page.file.src_uri, [])
    return _PLACE.sub(lambda found: outputs[int(found[1])], content)


def page_of(notebook: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The Markdown of a notebook, with places for its outputs, and the markup of these."""
    parts: list[str] = []
    outputs: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        markup = "".join(_markup(cell["outputs"]))
        if markup:
            parts.append(f'<div class="output" data-output="{len(outputs)}"></div>')
            outputs.append(f'<div class="output">{markup}</div>')
    return "\n\n".join(parts) + "\n\n", outputs


def _markup(outputs: list[dict[str, Any]]) -> Iterator[str]:
    """What the outputs of a cell look like: what was printed, and the richest form of a value."""
    printed = "".join("".join(each["text"]) for each in outputs if each["output_type"] == "stream")
    if printed:
        yield _plain(printed)
    for each in outputs:
        data = each.get("data", {})
        if "text/html" in data:
            yield "".join(data["text/html"]).replace("<iframe ", f'<iframe title="{_FRAME}" ')
        elif "image/png" in data:
            image = "".join(data["image/png"]).replace("\n", "")
            text = "".join(data.get("text/plain", ""))
            yield f'<img src="data:image/png;base64,{image}" alt="{escape(text)}">'
        elif "text/plain" in data:
            yield _plain("".join(data["text/plain"]))


def _plain(text: str) -> str:
    return f'<pre tabindex="0">{escape(text.rstrip())}</pre>'
