"""Draws the pictures of MLflow's pages in docs/images, from a real server in Chromium.

    python docs/make_mlflow_pictures.py "http://127.0.0.1:5000/#/experiments/1/runs?..."

The address is the one that a training prints; --width and --dark try other windows, with --into.
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
HEIGHT = 860
PATIENCE = 120_000  # milliseconds
MOST_SHOTS = 30  # until nothing moves any more
COLOURS = 128  # of a picture's palette
# Without them, MLflow's assistant takes a third of the first page.
SETTINGS = {
    "mlflow.assistant.panelOpen_v1": "false",
    "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": "true",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("address")
    parser.add_argument("--into", type=Path, default=IMAGES)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--dark", action="store_true")
    arguments = parser.parse_args()

    settings = {**SETTINGS, "_mlflow_dark_mode_toggle_enabled": str(arguments.dark).lower()}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": arguments.width, "height": HEIGHT})
        page.set_default_timeout(PATIENCE)
        for name, value in settings.items():
            page.add_init_script(f"localStorage.setItem({name!r}, {value!r})")

        page.goto(arguments.address)
        page.get_by_text("test/bleu", exact=True).first.wait_for()
        _wait_for_bars(page)
        _save(page, arguments.into / "mlflow_charts.png")
        page.get_by_placeholder("Search metric charts").fill("attention/")
        _wait_for_images(page)
        _save(page, arguments.into / "mlflow_attention.png")

        page.goto("about:blank")  # another fragment alone loads no page
        page.goto(arguments.address.replace("compareRunsMode=CHART", "compareRunsMode=TABLE"))
        page.get_by_role("columnheader", name="test/bleu").first.wait_for()
        _wait_for_numbers(page)
        _save(page, arguments.into / "mlflow_table.png")
        browser.close()


def _wait_for_bars(page: Page) -> None:
    """Wait until each chart on the screen has its bars."""
    page.wait_for_function(
        """() => {
          const cards = [...document.querySelectorAll(".js-plotly-plot")]
            .filter(card => card.getBoundingClientRect().top < innerHeight);
          return cards.length > 2 && cards.every(card => card.querySelector(".barlayer .point"));
        }"""
    )


def _wait_for_images(page: Page) -> None:
    """Wait until the images on the screen are loaded, and each run has one there."""
    page.wait_for_function(
        """() => {
          const images = [...document.querySelectorAll("img[src*='get-artifact']")]
            .filter(image => image.getBoundingClientRect().top < innerHeight);
          const spinners = document.querySelector("[class*='spinner'], [role='progressbar']");
          return images.length > 3 && !spinners
            && images.every(image => image.complete && image.naturalWidth > 0);
        }"""
    )


def _wait_for_numbers(page: Page) -> None:
    """Wait until every run in the table has a value of the metric that sorts it."""
    page.wait_for_function(
        """() => {
          const cells = [...document.querySelectorAll("[col-id='metrics.`test/bleu`']")]
            .filter(cell => cell.getAttribute("role") === "gridcell");
          return cells.length > 1 && cells.every(cell => /\\d/.test(cell.textContent));
        }"""
    )


def _save(page: Page, path: Path) -> None:
    """Save the window once two pictures of it, a second apart, are equal."""
    before, shot = b"", page.screenshot(timeout=PATIENCE)
    for _ in range(MOST_SHOTS):
        if shot == before:
            break
        page.wait_for_timeout(1000)
        before, shot = shot, page.screenshot(timeout=PATIENCE)
    picture = Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS)
    picture.save(path, optimize=True)


if __name__ == "__main__":
    main()
