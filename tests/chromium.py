"""Chromium without a window, for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from statistics import median
from typing import TYPE_CHECKING

import pytest
from PIL import Image, ImageColor

from attnlab.plots.colour_scale import contrast

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
)


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Chromium, for as long as the block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


def tables_without_a_shadow(page: Page) -> list[str]:
    """The boxes `.wide` that go on at the right edge, where no shadow says so.

    Each with the contrast of its edge to the page.
    """
    silent = []
    for box in page.locator(".wide").all():
        if not box.evaluate("box => box.scrollWidth > box.clientWidth + 1"):
            continue
        found = _contrast_of_the_right_edge(page, box)
        if found < 2.5:
            silent.append(f"{box.get_attribute('aria-label')}: {found:.2f}")
    return silent


def _contrast_of_the_right_edge(page: Page, box: Locator) -> float:
    """The median over the height, for a letter may stand at the edge."""
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    picture = Image.open(BytesIO(box.screenshot())).convert("RGB")
    place = picture.width - 2  # the last column may be a part of a pixel
    contrasts = []
    for height in range(picture.height):
        pixel = picture.getpixel((place, height))
        contrasts.append(contrast(pixel, ImageColor.getrgb(ground)))  # type: ignore[arg-type]
    return median(contrasts)
