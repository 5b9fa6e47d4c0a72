"""What a person clicks in MLflow's own pages after a sweep, in a real browser."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from entry_points import PIPELINES, TINY
from PIL import Image
from servers import mlflow_server

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")]

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
RUNS = ["bahdanau · seed 1", "bahdanau · seed 2", "dot · seed 1", "dot · seed 2"]
ANY_ATTENTION = [choice for choice in TINY if not choice.startswith(("model.attention.", "training.max_steps"))]
# What the pages say of themselves wherever they are: MLflow asks who is logged in, where nobody can log in, and its
# observers of sizes give up a round when much changes at once.
HARMLESS = ("/users/current", "ResizeObserver loop")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, warm_python: Path) -> Iterator[str]:
    """The address of MLflow over a sweep of four points."""
    folder = tmp_path_factory.mktemp("dashboard")
    sweep = [
        warm_python, PIPELINES / "train.py", "-m", *ANY_ATTENTION, "training.max_steps=12",
        "tracking.heat_map_sentences=1", "model/attention=dot,bahdanau", "seed=1,2",
    ]  # fmt: skip
    ended = subprocess.run(sweep, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    with mlflow_server(folder, f"sqlite:///{folder}/runs/mlflow.db", "--workers", "1") as address:
        yield address


@pytest.fixture
def page(server: str) -> Iterator[playwright.Page]:
    """The table of runs, the sweep's own opened so that its points are seen; errors on any page fail the test."""
    errors: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1800, "height": 1200})
        page.set_default_timeout(60_000)
        playwright.expect.set_options(timeout=60_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(f"{said.text} {said.location}") if said.type == "error" else None)
        open_runs(page, server)
        yield page
        browser.close()
    assert [error for error in errors if not any(words in error for words in HARMLESS)] == []


def open_runs(page: playwright.Page, server: str) -> None:
    page.goto(f"{server}/#/experiments/1/runs?workflowType=machine_learning&compareRunsMode=TABLE")
    sweep = page.get_by_role("link", name="sweep · attention × seed")
    sweep.wait_for()
    if not page.get_by_role("link", name=RUNS[0]).is_visible():
        page.locator(".ag-cell").filter(has=sweep).get_by_role("button").first.click()
    for name in RUNS:
        page.get_by_role("link", name=name).wait_for()


def test_varied_choices_become_columns_of_the_table(page: playwright.Page) -> None:
    page.get_by_role("button", name="Columns").click()
    for name in ("attention", "seed"):
        page.get_by_placeholder("Search columns").fill(name)
        found = page.locator("[class*=tree-treenode]").filter(has_text=re.compile(f"^{name}$"))
        found.locator("[class*=tree-checkbox]").first.click()
    page.keyboard.press("Escape")
    cells = page.locator(".ag-cell[col-id*='attention']")
    playwright.expect(cells.filter(has_text="bahdanau")).to_have_count(2)
    playwright.expect(cells.filter(has_text="dot")).to_have_count(2)
    playwright.expect(page.locator(".ag-cell[col-id*='seed']").filter(has_text="2")).to_have_count(2)


def coloured(png: bytes) -> int:
    """Pixels with a colour, the bar of colours at the right left out."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    pixels = pixels[:, : pixels.shape[1] * 8 // 10]
    return int((pixels.max(-1) - pixels.min(-1) > 30).sum())


@pytest.mark.parametrize("name", ["sentence_1.png", "attention.html"])
def test_heat_map_opens_among_the_artifacts(page: playwright.Page, name: str) -> None:
    page.get_by_role("link", name=RUNS[0]).click()
    page.get_by_role("tab", name="Artifacts").click()
    open_artifact(page, "attention", "step_000012", name)
    if name.endswith(".png"):
        found = page.wait_for_function(
            "[...document.images].find(image => image.naturalWidth > 300 && image.width > 200)"
        )
        picture = found.as_element()
        assert picture is not None
        assert coloured(picture.screenshot()) > 300
    else:
        cells = page.frame_locator("iframe").locator("tbody td")
        cells.first.wait_for()
        assert cells.count() > 3


def open_artifact(page: playwright.Page, *places: str) -> None:
    """Click from folder to folder to a file.

    MLflow draws the tree anew while it comes, and a click on what is drawn anew is lost: a person would click again.
    """
    for depth, place in enumerate(places, start=1):
        opened = page.get_by_text(re.compile(f"^Path:.*/artifacts/{'/'.join(places[:depth])}$"))
        for last in (False, False, True):
            page.get_by_text(place, exact=True).first.click()
            try:
                opened.wait_for(timeout=60_000 if last else 10_000)
            except playwright.TimeoutError:
                if last:
                    raise
            else:
                break
