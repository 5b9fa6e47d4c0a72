"""The pages of attention in a real browser, in the kind of frame that MLflow's viewer uses."""

from __future__ import annotations

import html
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.attention import heat_map_html, sentences_html

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
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
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser.new_page(viewport={"width": 900, "height": 700})
        browser.close()


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


def test_heat_map_html_in_a_browser_shows_values_offline(
    page: playwright.Page, tmp_path: Path
) -> None:
    problems = open_in_a_frame(
        page, heat_map_html([AttentionMap(SOURCE, TARGET, WEIGHTS, "안녕 → カナ")]), tmp_path
    )
    maps = page.frame_locator("iframe")

    assert [text.strip() for text in maps.locator("tbody th").all_inner_texts()] == TARGET
    assert [
        text.strip() for text in maps.locator("thead th[scope=col]").all_inner_texts()
    ] == SOURCE
    cell = maps.locator("tbody tr").nth(1).locator("td").nth(1)  # 세요, Grüße
    cell.hover()
    shown = cell.evaluate("cell => getComputedStyle(cell, '::after').content")
    assert "0.9" in shown
    assert "세요" in shown
    cells = maps.locator("tbody tr").nth(0).locator("td")
    assert int(np.argmax(cells.evaluate_all(SHADES))) == 0
    assert page.title() == "viewer"
    assert problems == []


def test_heat_map_html_in_a_browser_draws_hangul_and_kana(
    page: playwright.Page, tmp_path: Path
) -> None:
    """Two different syllables look different.

    The box for a missing glyph would make them the same picture.
    """
    pictures = []
    for token in ("안", "녕", "カ", "ナ"):
        path = tmp_path / "one.html"
        path.write_text(
            heat_map_html([AttentionMap([token], [token], np.ones((1, 1)), "")]), encoding="utf-8"
        )
        page.goto(path.as_uri())
        page.evaluate("document.fonts.ready")
        pictures.append(page.locator("tbody th").screenshot())
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
