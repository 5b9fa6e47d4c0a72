"""The page of an experiment in a real browser: narrow and wide, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_page import classification, translation, write

from attnlab.evaluation.attention_map import AttentionMap, save_maps
from attnlab.evaluation.examples import write_worst
from attnlab.evaluation.formed_attention import formed_maps
from attnlab.files import write_json
from chromium import needs_chromium, started_browser, tables_without_a_shadow
from windows import windows

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [pytest.mark.slow, needs_chromium]
__all__ = ["classification", "translation"]  # fixtures

# What is wider than its place, but scrolls there, must be reachable by the keyboard and show that
# it goes on: by a shadow of `.wide`, which `tables_without_a_shadow` looks at, or by the line
# `.heat-hint` above a map.
CUT_OFF = """() => {
  const found = [];
  const whole = document.documentElement;
  if (whole.scrollWidth > whole.clientWidth) found.push("page");
  for (const each of document.querySelectorAll("body *")) {
    if (each.scrollWidth <= each.clientWidth + 1 || !each.clientWidth) continue;
    if (getComputedStyle(each).overflowX === "visible") continue;
    const hint = each.previousElementSibling;
    const hinted = each.matches(".wide") || (hint?.matches(".heat-hint") && hint.clientHeight > 0);
    if (!hinted || each.tabIndex < 0) found.push(each.outerHTML.slice(0, 80));
  }
  return found;
}"""
SMALLEST_TYPE = """() => Math.min(...[...document.querySelectorAll("svg text")].map(text => {
  const box = text.ownerSVGElement;
  const scale = box.viewBox.baseVal?.width ? box.clientWidth / box.viewBox.baseVal.width : 1;
  return parseFloat(getComputedStyle(text).fontSize) * scale;
}))"""
COLOURS = """() => [getComputedStyle(document.body).backgroundColor,
  getComputedStyle(document.querySelector(".chart svg text")).fill]"""


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with started_browser() as browser:
        yield browser


@pytest.fixture(params=["translation", "classification"])
def report(request: pytest.FixtureRequest) -> Path:
    """The page of a report with a long and a short sentence, worst ones and validations."""
    folder: Path = request.getfixturevalue(request.param)
    length = 30
    tokens = [f"낱말{number}" for number in range(length)]
    is_translation = request.param == "translation"
    rows = tokens if is_translation else tokens[:1]
    weights = np.full((len(rows), length), 1 / length)
    wide = AttentionMap(tokens, rows, weights, "긴 문장")
    save_maps([wide], folder / "evaluation" / "attention.npz")
    short = AttentionMap([*tokens[:4], "<eos>"], rows[:1], np.full((1, 5), 1 / 5), "짧은 문장")
    write_worst(folder / "evaluation", [1], [0], [short])
    for step, each in ((10, short), (20, wide)):
        save_maps([each], formed_maps(folder / "training", f"step_{step:06d}"))
    links = [{"token": "요" * 20, "links": 9, "wrong": 7}]
    write_json(folder / "evaluation" / "wrong_links.json", links)
    write(folder)
    return folder / "report" / "index.html"


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_report_in_a_browser_cuts_off_nothing_without_a_hint(
    browser: playwright.Browser, report: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate(CUT_OFF) == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert tables_without_a_shadow(page) == []
    assert page.evaluate(SMALLEST_TYPE) >= 8
    page.close()


def test_charts_in_a_browser_take_the_colours_of_the_page(
    browser: playwright.Browser, report: Path
) -> None:
    found = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(report.as_uri())
        found[scheme] = page.evaluate(COLOURS)
        page.close()
    assert found["light"] == ["rgb(255, 255, 255)", "rgb(36, 41, 47)"]
    assert found["dark"] == ["rgb(13, 17, 23)", "rgb(230, 237, 243)"]


@windows(400, 1280)
def test_report_in_a_browser_passes_axe(
    browser: playwright.Browser, report: Path, width: int, scheme: Any
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    violations = axe.Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["target"]) for each in violations] == []
    page.close()
