"""The page of `dvc plots` in a browser, with a stand-in for Vega, which DVC loads from the web."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from entry_points import ROOT

from chromium import needs_chromium, started_browser

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [pytest.mark.slow, needs_chromium]

# Draws a box of the size that Vega's chart of the same width and height has.
VEGA = """<script>window.vegaEmbed = (place, spec) => {
  window.specs = [...(window.specs ?? []), spec];
  const box = document.querySelector(place);
  box.textContent = spec.title.text;
  box.style = `width: ${spec.width + 50}px; height: ${spec.height + 80}px; overflow: hidden`;
};</script>"""
PICTURE = (
    "data:image/svg+xml,"
    "<svg xmlns='http://www.w3.org/2000/svg' width='1100' height='850'><rect/></svg>"
)


def curve(number: int) -> dict[str, Any]:
    """What DVC makes of the template `simple`."""
    return {
        "title": {"text": f"build/report/curves/train/curve_{number}.csv", "anchor": "middle"},
        "width": 300,
        "height": 300,
        "mark": {"type": "line"},
    }


def page_of(folder: Path, scripts: str, specs: list[dict[str, Any]]) -> str:
    """The address of a page as DVC writes it: charts, then a picture of two experiments."""
    parts = []
    for number, spec in enumerate(specs):
        start = f"var spec = {json.dumps(spec)}; vegaEmbed('#plot_{number}', spec);"
        parts.append(f"<div id='plot_{number}'><script>{start}</script></div>")
    style = "border:1px dotted black;margin:2px;display: inline-block;overflow:hidden"
    pictures = f"<div style='{style}'><p>dot</p><img src=\"{PICTURE}\"></div>\n" * 2
    parts.append(f"<div style='border:1px solid'><p>attention_1.png</p>{pictures}</div>")
    text = (ROOT / ".dvc" / "plots.html").read_text(encoding="utf-8")
    for name, content in (
        ("refresh_tag", ""),
        ("scripts", scripts),
        ("plot_divs", "\n".join(parts)),
    ):
        text = text.replace("{" + name + "}", content)
    path = folder / "index.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page() -> Iterator[playwright.Page]:
    with started_browser() as browser:
        yield browser.new_page(viewport={"width": 1280, "height": 900})


@pytest.mark.long
def test_ten_curves_and_the_pictures_of_two_experiments_fit_on_one_screen(
    page: playwright.Page, tmp_path: Path
) -> None:
    page.goto(page_of(tmp_path, VEGA, [curve(number) for number in range(10)]))
    first, second = (each.bounding_box() for each in page.locator("img").all())
    assert first["y"] == second["y"]
    assert second["x"] + second["width"] <= 1280
    assert first["y"] + first["height"] <= 900
    assert first["width"] / first["height"] == pytest.approx(1100 / 850, rel=0.01)
    assert page.locator("main > div").first.inner_text() == "train/curve_0"


def test_chart_that_is_no_curve_stays_as_it_is(page: playwright.Page, tmp_path: Path) -> None:
    bars = {"title": {"text": "own"}, "width": 300, "height": 300, "mark": {"type": "bar"}}
    page.goto(page_of(tmp_path, VEGA, [bars]))
    assert page.evaluate("specs") == [bars]


def test_page_without_vega_says_so_and_has_the_pictures(
    page: playwright.Page, tmp_path: Path
) -> None:
    page.goto(page_of(tmp_path, "", [curve(0)]))
    assert page.locator("#offline").is_visible()
    assert page.locator("img").count() == 2
