"""Python code of the pages in docs/.

It runs as it stands: all blocks of a page in order, in one namespace.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path

import pytest
import pytorch_lightning as pl
from tiny_folders import write_translator

from attnlab.data.trainers import CharacterTrainer

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    "attention_module.md",
    "explorer.md",
    "ko/explorer.md",
    "ko/use_a_model.md",
    "use_a_model.md",
]


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
    trainer = pl.Trainer
    (tmp_path / "build").mkdir()
    write_translator(tmp_path / "build", source=CharacterTrainer(min_frequency=1))
    (tmp_path / "dates.txt").write_text("Sunday, March 1, 2026\nlundi 2 septembre 1991\n")
    # The notebook trains in full. Lightning's class has a subclass of ours, which must exist before
    # a function takes its place.
    importlib.import_module("attnlab.training.supervised")
    monkeypatch.setattr(pl, "Trainer", lambda max_steps, **more: trainer(max_steps=2, **more))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, block in code:
        # A traceback names the page's line
        exec(compile("\n" * line + block, str(path), "exec"), namespace)


def test_blocks_of_a_page_are_found_with_their_lines():
    text = "# Page\n```sh\nls\n```\n```python\na = 1\n```\ntext\n```python\nb = 2\n\nc = 3\n```\n"
    assert blocks(text) == [(5, "a = 1\n"), (9, "b = 2\n\nc = 3\n")]


@pytest.mark.long
@pytest.mark.slow
def test_notebook_runs(tmp_path, monkeypatch, capsys):
    """Cell by cell, the last expression shown as a notebook shows it."""
    path = ROOT / "docs" / "notebooks" / "question_a_model.ipynb"
    cells = [
        cell
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    assert len(cells) >= 8
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    pages = []
    for number, cell in enumerate(cells, start=1):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
            pages += [shown._repr_html_()] if hasattr(shown, "_repr_html_") else []
    assert "2026년 3월 1일 일요일" in capsys.readouterr().out
    assert all(page.startswith("<iframe") and "요" in page for page in pages)
    assert pages


def test_code_of_the_page_on_own_parts_is_that_of_the_tested_package():
    page = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
    package = ROOT / "tests" / "extension" / "lab_extras"
    sources = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    code = [block for _, block in blocks(page)]
    assert len(code) >= 8
    for block in code:
        assert any(block in source for source in sources), block
