"""Pages of docs/ whose Python code runs as it stands: all blocks of a page in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["attention_module.md"]


def blocks(text: str) -> list[tuple[int, str]]:
    """(lines before it, code) of each Python block."""
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, block.start(1)), block[1]) for block in found]


@pytest.mark.parametrize("page", PAGES)
def test_python_code_of_a_docs_page_runs(page, tmp_path, monkeypatch):
    path = ROOT / "docs" / page
    code = blocks(path.read_text(encoding="utf-8"))
    assert code
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, block in code:
        exec(compile("\n" * line + block, str(path), "exec"), namespace)  # a traceback names the page's line


def test_blocks_of_a_page_are_found_with_their_lines():
    text = "# Page\n```sh\nls\n```\n```python\na = 1\n```\ntext\n```python\nb = 2\n\nc = 3\n```\n"
    assert blocks(text) == [(5, "a = 1\n"), (9, "b = 2\n\nc = 3\n")]
