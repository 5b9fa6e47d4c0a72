"""The built docs site: it is whole, needs no network, and its search finds Korean words."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
pytestmark = pytest.mark.slow

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
# What a browser loads by itself when it shows a page
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
# One page of each kind; all other pages are opened narrow and in light.
KINDS = [
    "index.html",
    "ko/index.html",
    "architecture.html",
    "mechanisms.html",
    "settings.html",
    "api/score.html",
    "notebooks/question_a_model.html",
]


@dataclass
class Markup(HTMLParser):
    """The names, the links and the loaded addresses of a page."""

    names: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    language: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.names |= {values.get("id", ""), values.get("name", "")}
        if tag == "html":
            self.language = values.get("lang", "")
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if LOADED.get(tag) in values:
            self.loaded.append(values[LOADED[tag]])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Markup]:
    """{file: its markup} of every page."""
    found = {}
    for path in site.rglob("*.html"):
        if path.name == "404.html":  # its links are those of a server
            continue
        markup = Markup()
        markup.feed(path.read_text(encoding="utf-8"))
        found[path] = markup
    return found


def test_links_and_images_of_the_site_lead_to_files_and_anchors_that_exist(pages, site):
    broken = []
    for path, markup in pages.items():
        for link in [*markup.links, *markup.loaded]:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path)))
            if not parts.path:
                target = path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and anchor not in pages[target].names):
                broken.append((str(path.relative_to(site)), link))
    assert len(pages) > 60
    assert broken == []


def test_pages_load_nothing_from_elsewhere(pages, site):
    elsewhere = {
        address
        for markup in pages.values()
        for address in markup.loaded
        if urlsplit(address).scheme not in ("", "data")
    }
    sheets = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert elsewhere == set()
    assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*", sheets) == []


def test_pages_say_their_language(pages, site):
    assert pages[site / "ko" / "index.html"].language == "ko"
    assert pages[site / "index.html"].language == "en"


def test_pages_of_linked_files_show_their_text(pages, site):
    shown = (site / "source" / "pipelines" / "train.py.html").read_text(encoding="utf-8")
    assert "make_trainer" in shown


def test_python_api_shows_signatures_and_lists_settings(site):
    shown = (site / "api" / "score.html").read_text(encoding="utf-8")
    assert "project_keys" in shown
    assert "<li><code>projected_key_size</code>: width A of the projected keys" in shown


def test_notebook_page_shows_its_heat_map(pages, site):
    page = site / "notebooks" / "question_a_model.html"
    assert "<iframe title=" in page.read_text(encoding="utf-8")
    assert "question_a_model.ipynb" in pages[page].links


@dataclass
class Visit:
    """A page in a browser that is cut off from the network, and what went wrong there."""

    page: playwright.Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.route("**/*", self._answer)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._listen)

    def _answer(self, route: playwright.Route) -> None:
        address = route.request.url
        if address.startswith(("file:", "data:", "about:")):
            route.continue_()
        else:
            self.requests.append(address)
            route.abort()

    def _listen(self, message: playwright.ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def open(self, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.page.goto(path.as_uri())

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        root = "document.documentElement"
        return self.page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: playwright.Browser) -> Iterator[Visit]:
    page = browser.new_page()
    yield Visit(page)
    page.close()


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_kinds_of_pages_fit_the_window_and_ask_for_nothing(visit, site, width, scheme):
    wide = {}
    for name in KINDS:
        visit.open(site / name, width, scheme)
        if visit.overflow > 0:
            wide[name] = visit.overflow
    assert wide == {}
    assert visit.requests == []
    assert visit.errors == []


@in_a_browser
def test_every_page_fits_a_narrow_window_and_asks_for_nothing(visit, pages, site):
    wide = {}
    for path in pages:
        visit.open(path, width=400)
        if visit.overflow > 0:
            wide[str(path.relative_to(site))] = visit.overflow
    assert wide == {}
    assert visit.requests == []
    assert visit.errors == []


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_kinds_of_pages_have_no_violation_of_accessibility(visit, site, scheme):
    violations = []
    for name in KINDS:
        if name == "settings.html":
            continue  # axe takes a minute for its thousand rows
        visit.open(site / name, scheme=scheme)
        found = Axe().run(visit.page).response["violations"]
        violations += [(name, each["id"], each["nodes"][0]["html"]) for each in found]
    assert violations == []


@in_a_browser
def test_page_follows_the_colours_of_the_system(visit, site):
    colours = []
    for scheme in ("light", "dark"):
        visit.open(site / "architecture.html", scheme=scheme)
        colours.append(
            visit.page.evaluate(
                "[getComputedStyle(document.body).backgroundColor,"
                " getComputedStyle(document.querySelector('.diagram .node rect')).fill]"
            )
        )
    light, dark = colours
    assert light[0] != dark[0]
    assert light[1] != dark[1]


@in_a_browser
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("어텐션", "/ko/"),
        ("컨텍스트 벡터", "/ko/"),
        ("패딩", "/ko/"),  # stands there as 패딩을, too
        ("마스킹하지", "/ko/"),
        ("쿼리를", "/ko/"),  # stands there without its particle
        ("부족해지는", "/ko/index.html"),
        ("sparsemax", "/mechanisms.html"),
        ("project_keys", "/api/score.html"),
    ],
)
def test_search_finds_words_of_both_languages(visit, site, query, expected):
    visit.open(site / "index.html")
    box = visit.page.get_by_role("textbox", name=re.compile("Search"))
    box.click()
    box.fill(query)
    box.press("End")  # the page searches when a key goes up
    results = visit.page.locator("a.md-search-result__link")
    results.first.wait_for(timeout=20_000)
    found = results.evaluate_all("links => links.map(link => link.href)")
    assert any(expected in link for link in found), found
    assert visit.requests == []
    assert visit.errors == []


@in_a_browser
def test_menu_leads_to_the_page_in_the_other_language(visit, site):
    visit.open(site / "ko" / "index.html")
    links = visit.page.locator(".md-select__link").evaluate_all("all => all.map(a => a.href)")
    assert links == [(site / "index.html").as_uri(), (site / "ko" / "index.html").as_uri()]
