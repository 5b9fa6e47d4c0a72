"""Files of the repository outside of docs/: pages of their own, and the links to them.

A hook of MkDocs. The root's Markdown files become pages of the site. A link to any other file leads
to a page with the file's text, a link to a folder to the list of its files: whoever has the site
has what its pages speak of.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# {file: the page that it becomes}
ROOT_PAGES = {
    "README.md": "tour.md",
    "README.ko.md": "ko/tour.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
}
_SOURCES = "source"  # the folder of the pages that show files
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".md": "markdown", ".toml": "toml", ".js": "js"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root's files, and those of all files that a page links to."""
    for name, page in ROOT_PAGES.items():
        if (ROOT / name).is_file():
            text = (ROOT / name).read_text(encoding="utf-8")
            content = text if name.endswith(".md") else f"# {name}\n\n```text\n{text}```\n"
            files.append(File.generated(config, page, content=content))

    for path in _linked_files(files.documentation_pages()):
        files.append(File.generated(config, _shown_at(path), content=_shown(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files outside of docs/ lead to their pages."""
    return with_links(markdown, page.file.src_uri)


def with_links(markdown: str, page: str) -> str:
    """The text of a page, in which links to files of the repository lead to pages of the site.

    page: its place in the site, such as `how-to/install-the-wheel.md`.
    """
    folder = PurePosixPath(page).parent

    def lead(link: re.Match[str]) -> str:
        target = _resolved(page, link[2])
        if target is None:
            return link[0]
        return f"{link[1]}{os.path.relpath(_place(target), folder)}{link[3] or ''}"

    return _outside_of_fences(markdown, lambda text: _LINK.sub(lead, text))


def _linked_files(pages: Iterable[File]) -> list[Path]:
    """The files and folders that get a page of their own: these pages link to them."""
    found: set[Path] = set()
    for page in pages:
        prose = _FENCE.sub("", page.content_string)
        for link in _LINK.finditer(prose):
            target = _resolved(page.src_uri, link[2])
            if target is not None and _place(target).startswith(f"{_SOURCES}/"):
                found.add(target)
                found.update(_files_in(target))
    return sorted(found)


def _files_in(folder: Path) -> list[Path]:
    """The files below a folder; none for a file."""
    paths = [path for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return sorted(path for path in paths if path.is_file())


def _resolved(page: str, link: str) -> Path | None:
    """The file of the repository that a link of a page names; None where the site has it as such.

    Links of a page stand as they work in the file that the page was made of.
    """
    origin = next((ROOT / name for name, at in ROOT_PAGES.items() if at == page), None)
    if origin is None and page.startswith(f"{_SOURCES}/"):
        return None  # its links are made for the site
    if origin is None:
        origin = ROOT / "docs" / page
    target = Path(os.path.normpath(origin.parent / link))
    in_docs = target.is_relative_to(ROOT / "docs")
    if not target.exists() or not target.is_relative_to(ROOT):
        return None  # MkDocs reports it
    if in_docs and origin.is_relative_to(ROOT / "docs") and target.is_file():
        return None
    return target


def _place(target: Path) -> str:
    """The page of the site that stands for a file or folder of the repository."""
    name = target.relative_to(ROOT).as_posix()
    if name in ROOT_PAGES:
        return ROOT_PAGES[name]
    if target.is_relative_to(ROOT / "docs") and target.is_file():
        return target.relative_to(ROOT / "docs").as_posix()
    return _shown_at(target)


def _shown_at(target: Path) -> str:
    return f"{_SOURCES}/{target.relative_to(ROOT).as_posix()}.md"


def _shown(target: Path) -> str:
    """The page of a file or folder."""
    name = target.relative_to(ROOT).as_posix()
    search = "---\nsearch:\n  exclude: true\n---\n"  # the pages that speak of it are what one seeks
    if target.is_dir():
        paths = [path.relative_to(target.parent).as_posix() for path in _files_in(target)]
        items = [f"- [{path}]({path}.md)" for path in paths]
        return "\n".join([search + f"# {name}/", "", *items, ""])
    text = target.read_text(encoding="utf-8")
    # A longer fence than any in the text
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    language = _LANGUAGES.get(target.suffix, "text")
    return f"{search}# {name}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _outside_of_fences(markdown: str, change: Callable[[str], str]) -> str:
    """The text with its prose changed, and its blocks of code as they are."""
    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])
