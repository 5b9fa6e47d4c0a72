"""README and docs: linked files, scripts and tests exist, no section is empty, signals requeue."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from attnlab.training.processes import is_to_requeue

ROOT = Path(__file__).resolve().parent.parent
ROOT_PAGES = ("README.md", "README.ko.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in ROOT_PAGES), *sorted((ROOT / "docs").rglob("*.md"))]


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


def named_tests(page: Path) -> list[str]:
    """The files and folders of tests that a page names, perhaps as a pattern."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"(?<![\w/.-])tests/[\w/.*-]*[\w/*]", text)


def test_docs_pages_name_tests():
    assert sum(len(named_tests(page)) for page in PAGES) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_names_only_tests_that_exist(page):
    assert [name for name in named_tests(page) if not list(ROOT.glob(name))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_job_of_slurm_asks_for_the_signal_that_queues_it_again(page, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    monkeypatch.setenv("SLURM_JOB_NAME", "train")
    text = page.read_text(encoding="utf-8")
    asked = re.findall(r"--signal=(?:[BR]:)?(\w+)@\d", text)
    assert [name for name in asked if not is_to_requeue(signal.Signals[f"SIG{name}"])] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_has_no_empty_section(page):
    text = re.sub(r"```.*?```", "code", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        assert body.strip() or title in ("attnlab", "Contributing"), title
