"""The text of an exported page: the explorer's scripts and style, the engine, and the models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.explorer import PAGE
from attnlab.plots.heat_map_css import heat_map_css

ENGINE = Path(__file__).parent / "engine"


def html_page(models: Sequence[Mapping[str, Any]]) -> str:
    """The explorer's page with its modules, its style, the engine and the models inside."""
    modules = [_module(name, text) for name, text in page_modules().items()]
    # No token of a vocabulary may end the script.
    data = compact(models).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>attnlab explorer</title>
<link rel="icon" href="data:,">
<style>{page_style()}</style>
{"".join(modules)}<script>{IMPORT_MAP}</script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. 자바스크립트를 켜야 이 페이지를 볼 수 있습니다.</noscript>
<script>{OLD_BROWSER}</script>
<script type="application/json" id="exported-models">{data}</script>
<script type="module">import "explorer/engine/start.js";</script>
</body>
</html>
"""


# The page may ask nobody: neither this machine nor any other.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


# A file has no addresses for its modules: each becomes a data: URL.
IMPORT_MAP = """
const imports = {};
for (const module of document.querySelectorAll("script[data-module]")) {
  const text = encodeURIComponent(module.textContent);
  imports[module.dataset.module] = `data:text/javascript;charset=utf-8,${text}`;
}
const map = document.createElement("script");
map.type = "importmap";
map.textContent = JSON.stringify({ imports });
document.head.append(map);
"""


# In the words of old browsers; a newer one draws the page over it.
OLD_BROWSER = """
if (!("supports" in HTMLScriptElement && HTMLScriptElement.supports("importmap")
  && String.prototype.isWellFormed && CSS.supports("selector(:has(a))"))) {
  document.getElementById("app").textContent = "This browser is too old for this page. It needs "
    + "Chrome or Edge 111, Firefox 121, Safari 16.4, or a newer version. "
    + "이 페이지를 보려면 더 새로운 브라우저가 필요합니다.";
}
"""


def page_modules() -> dict[str, str]:
    """The scripts of the page and of the engine, by the names that they import each other by."""
    modules = {}
    for path in sorted(PAGE.rglob("*.js")):
        if path.name == "server_words.js":  # of what the engine cannot compute
            continue
        modules[f"explorer/{path.relative_to(PAGE).as_posix()}"] = path.read_text("utf-8")
    for path in sorted(ENGINE.glob("*.js")):
        # A module in a data: URL has no neighbours.
        text = re.sub(r'from "\./', 'from "explorer/engine/', path.read_text("utf-8"))
        modules[f"explorer/engine/{path.name}"] = text
    return modules


def page_style() -> str:
    """The page's style, with the fonts of the reader's machine alone."""
    style = (PAGE / "style.css").read_text("utf-8")
    style = re.sub(r',\s*url\("fonts/[^"]*"\)', "", style)
    embedded = (ENGINE / "embed.css").read_text("utf-8")
    bare = without_comments(f"{heat_map_css()}\n{style}\n{embedded}")
    return re.sub(r"\s*([{};])\s*", r"\1", bare)  # white space between rules has no meaning


def without_comments(script: str) -> str:
    """A script or style without indentation, empty lines and comments.

    A comment behind code stays where it has a quotation mark: what looks like one may then stand in
    a string.
    """
    bare = re.sub(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*$", "", script, flags=re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"\s//\s[^\"'`]*$", "", line).strip() for line in bare.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def compact(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _module(name: str, script: str) -> str:
    """A module as text of the page, from which IMPORT_MAP makes an address."""
    text = without_comments(script)
    assert not re.search("</script|<!--", text, re.IGNORECASE), name  # they would end the text
    return f'<script type="text/plain" data-module="{name}">\n{text}</script>\n'
