"""The pages of attention in a real browser, in the kind of frame that MLflow's viewer uses."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.colour_scale import DARK, LEVELS, LIGHT
from attnlab.plots.heat_map_html import heat_map_page
from attnlab.plots.sentences import sentences_html
from chromium import needs_chromium, started_browser

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = needs_chromium

SOURCE = ["안녕", "<b>Grüße</b>", "<script>document.title='broken'</script>", "<eos>"]
TARGET = ["カナ", "세요", "<eos>"]
WEIGHTS = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.0, 0.9, 0.05, 0.05], [0.05, 0.05, 0.1, 0.8]], dtype=np.float32
)


SHADES = (
    "cells => cells.map("
    "cell => parseFloat(getComputedStyle(cell).backgroundColor.split(',')[3] ?? 1))"
)


@pytest.fixture(scope="module")
def page() -> Iterator[playwright.Page]:
    with started_browser() as browser:
        yield browser.new_page(viewport={"width": 900, "height": 700})


def open_in_a_frame(page: playwright.Page, inner: str, folder: Path) -> list[str]:
    """Open a page as MLflow's viewer does; returns all errors.

    Requests to other addresses are among the errors.
    """
    outer = folder / "viewer.html"
    frame = (
        '<iframe sandbox="allow-scripts" width="880" height="660" '
        f'srcdoc="{html.escape(inner)}"></iframe>'
    )
    outer.write_text(
        f"<!doctype html><meta charset='utf-8'><title>viewer</title>{frame}", encoding="utf-8"
    )
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    # The fonts lie inside the page, as data.
    here = ("file:", "data:", "about:")
    page.on(
        "request",
        lambda request: None if request.url.startswith(here) else problems.append(request.url),
    )
    page.goto(outer.as_uri())
    return problems


def test_heat_map_page_in_a_browser_draws_square_cells_offline(
    page: playwright.Page, tmp_path: Path
) -> None:
    problems = open_in_a_frame(
        page, heat_map_page([AttentionMap(SOURCE, TARGET, WEIGHTS, "안녕 → カナ")]), tmp_path
    )
    maps = page.frame_locator("iframe")

    assert [text.strip() for text in maps.locator(".heat-labels > *").all_inner_texts()] == TARGET
    assert [text.strip() for text in maps.locator(".heat-heads > *").all_inner_texts()] == SOURCE
    cells = maps.locator(".heat-cells g")
    shades = "cells => cells.map(cell => getComputedStyle(cell.querySelector('rect')).fill)"
    first_row = cells.evaluate_all(shades)[:4]
    brightness = [sum(map(int, shade[4:-1].split(","))) for shade in first_row]
    assert int(np.argmin(brightness)) == 0
    box = cells.first.locator("rect").bounding_box()
    assert box["width"] == pytest.approx(box["height"], abs=0.5)
    line = 1  # around the cell
    assert 32 <= box["width"] - line <= 72
    assert page.title() == "viewer"
    assert problems == []


def test_upright_labels_stand_above_the_middle_of_their_columns(
    page: playwright.Page, tmp_path: Path
) -> None:
    source = ["a", "student", "Wednesday", "x", "vocabulary", "<eos>", "b", "c"] * 2
    weights = np.full((6, len(source)), 1 / len(source))
    attention = AttentionMap(source, ["un", "deux", "trois", "quatre", "cinq", "<eos>"], weights)
    page.set_viewport_size({"width": 900, "height": 1400})
    path = tmp_path / "map.html"
    path.write_text(heat_map_page([attention]), encoding="utf-8")
    page.goto(path.as_uri())
    middle = (
        "all => all.map(each => each.getBoundingClientRect()).map(box => box.x + box.width / 2)"
    )
    heads = page.locator(".heat-heads > *").evaluate_all(middle)
    cells = page.locator(".heat-cells g rect").evaluate_all(middle)[: len(source)]
    np.testing.assert_allclose(heads, cells, atol=1)


WIDE = AttentionMap(
    [f"source{i}" for i in range(60)],
    [f"목표{i}" for i in range(60)],
    np.full((60, 60), 1 / 60),
    "60 x 60",
    wrong_targets=[0, 59],
)


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_wide_heat_map_scrolls_in_its_own_box_and_says_so(
    page: playwright.Page, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "wide.html"
    narrow = AttentionMap(SOURCE, TARGET, WEIGHTS, "narrow")
    path.write_text(heat_map_page([WIDE, narrow]), encoding="utf-8")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width

    hints = page.locator(".heat-hint").evaluate_all("hints => hints.map(hint => hint.clientHeight)")
    assert hints[0] > 15
    assert hints[1] == 0
    # The labels of the rows stay while the columns scroll.
    box = page.locator(".heat-scroll").first
    labels = page.locator(".heat-labels").first
    before = labels.bounding_box()["x"]
    box.evaluate("box => box.scrollTo(9999, 0)")
    assert box.evaluate("box => box.scrollLeft") > 600
    assert labels.bounding_box()["x"] == pytest.approx(before)


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_heat_map_whose_columns_fit_needs_no_scrolling(
    page: playwright.Page, tmp_path: Path, width: int
) -> None:
    """Upright labels are wider than their columns before they are turned."""
    source = [*"abcd", "vocabulary", "<eos>"]
    attention = AttentionMap(source, ["x", "<eos>"], np.full((2, 6), 1 / 6))
    path = tmp_path / "short.html"
    path.write_text(heat_map_page([attention]), encoding="utf-8")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.as_uri())
    box = page.locator(".heat-scroll")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    assert page.locator(".heat-hint").evaluate("hint => hint.clientHeight") == 0


def test_box_of_relative_colours_makes_the_largest_weight_of_each_row_the_strongest(
    page: playwright.Page, tmp_path: Path
) -> None:
    path = tmp_path / "relative.html"
    path.write_text(heat_map_page([AttentionMap(["a", "b"], ["x"], [[0.1, 0.2]])]), "utf-8")
    page.goto(path.as_uri())
    fill = "cell => getComputedStyle(cell).fill"
    largest = page.locator(".heat-cells rect").nth(1)
    absolute = largest.evaluate(fill)
    page.get_by_label("colour each row by its own largest weight").check()
    assert absolute == css_colour(LIGHT.colours[4])
    assert largest.evaluate(fill) == css_colour(LIGHT.colours[LEVELS])
    assert page.locator(".heat-legend").inner_text().startswith("0\nlargest of the row")


def css_colour(colour: tuple[int, int, int]) -> str:
    return "rgb({}, {}, {})".format(*colour)


def test_dark_page_draws_heat_maps_in_its_own_colours(
    page: playwright.Page, tmp_path: Path
) -> None:
    path = tmp_path / "dark.html"
    path.write_text(heat_map_page([AttentionMap(["a"], ["x"], [[1.0]])]), encoding="utf-8")
    page.emulate_media(color_scheme="dark")
    try:
        page.goto(path.as_uri())
        fill = page.locator(".heat-cells rect").evaluate("cell => getComputedStyle(cell).fill")
    finally:
        page.emulate_media(color_scheme="light")
    assert fill == css_colour(DARK.colours[LEVELS])


def test_heat_map_page_in_a_browser_draws_hangul_and_kana(
    page: playwright.Page, tmp_path: Path
) -> None:
    """Two different syllables look different.

    The box for a missing glyph would make them the same picture.
    """
    pictures = []
    for token in ("안", "녕", "カ", "ナ"):
        path = tmp_path / "one.html"
        path.write_text(
            heat_map_page([AttentionMap([token], [token], np.ones((1, 1)), "")]), encoding="utf-8"
        )
        page.goto(path.as_uri())
        page.evaluate("document.fonts.ready")
        pictures.append(page.locator(".heat-labels bdi").screenshot())
    assert len(set(pictures)) == 4


def test_sentences_html_in_a_browser_shows_weights(page: playwright.Page, tmp_path: Path) -> None:
    sentence = AttentionMap(SOURCE, ["안녕"], WEIGHTS[:1], "안녕 <b>")
    problems = open_in_a_frame(page, sentences_html([sentence]), tmp_path)
    tokens = page.frame_locator("iframe").locator(".token")
    assert [text.strip() for text in tokens.all_inner_texts()] == SOURCE
    tokens.nth(1).hover()
    assert "Grüße</b>: 0.100" in tokens.nth(1).evaluate(
        "token => getComputedStyle(token, '::after').content"
    )
    shades = tokens.evaluate_all(SHADES)
    assert int(np.argmax(shades)) == 0
    assert shades[1] == pytest.approx(shades[0] / 7, abs=0.01)
    assert page.title() == "viewer"
    assert problems == []
