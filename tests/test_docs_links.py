"""README and docs: every linked file and script exists, and no section is empty."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "README.ko.md", *sorted((ROOT / "docs").rglob("*.md"))]


def named(page: Path) -> tuple[list[str], list[str]]:
    """Its links to files, and the scripts that its commands start."""
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if not link.startswith("http")]
    return links, re.findall(r"python (pipelines/\w+\.py)", text)


def test_docs_pages_have_links_and_scripts():
    found = [named(page) for page in PAGES]
    assert sum(len(links) for links, _ in found) > 5
    assert sum(len(scripts) for _, scripts in found) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_links_only_to_existing_files(page):
    links, scripts = named(page)
    assert [link for link in links if not (page.parent / link).exists()] == []
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_names_only_tests_that_exist(page):
    paths = set(re.findall(r"\btests/[\w/]+(?:\.py)?", page.read_text(encoding="utf-8")))
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_has_no_empty_section(page):
    text = re.sub(r"```.*?```", "code", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        assert body.strip() or title == "attnlab", title
