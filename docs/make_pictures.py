"""Draws the pictures of experiments in docs/images anew; each takes a minute or two.

    python docs/make_pictures.py reverse
    python docs/make_pictures.py dvc [--vega FOLDER]

`reverse` trains a model that reverses sequences and draws a map of its test set. `dvc` runs two
experiments in a copy of the project, and takes a picture of the page of `dvc plots diff` in
Chromium. The page loads Vega from the web; where that cannot be reached, --vega names a folder with
the npm packages vega, vega-lite and vega-embed.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Route, sync_playwright

from attnlab.evaluation.attention_map import load_maps
from attnlab.plots.figure import save_png
from attnlab.plots.heat_map_figure import heat_map_figure

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
REVERSE = (
    "data=reverse",
    "model/attention=general",
    "model/decoder=step_then_attend",
    "search=greedy",
    "training.max_steps=500",
    "training.validate_every=500",
    "tracking=none",
)
# Two experiments that differ in the score, on sequences to copy.
SMALL = (
    "data.num_pairs=600",
    "data.max_length=6",
    "training.validate_every=20",
    "training.batching.size=16",
    "training.optimizer.lr=0.01",
    "model.encoder.hidden_size=32",
    "model.encoder.embedding_size=32",
    "model.decoder.hidden_size=64",
    "model.readout.size=32",
    "tracking=none",
)
STEPS = 160
SCREEN = {"width": 1280, "height": 900}
PATIENCE = 60_000  # milliseconds
COLOURS = 128  # of a picture's palette


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("picture", choices=["reverse", "dvc"])
    parser.add_argument("--into", type=Path, default=IMAGES)
    parser.add_argument("--vega", type=Path)
    arguments = parser.parse_args()

    with TemporaryDirectory() as folder:
        if arguments.picture == "reverse":
            draw_reverse_heat_map(Path(folder), arguments.into)
        else:
            page = compare_experiments(Path(folder) / "attnlab")
            take_picture(page, arguments.into / "dvc_plots.png", arguments.vega)


def draw_reverse_heat_map(folder: Path, into: Path) -> None:
    """Train, and draw the longest of the test set's typical sentences."""
    run(sys.executable, "pipelines/train.py", *REVERSE, f"paths.runs={folder}", cwd=ROOT)
    (maps_file,) = folder.glob("points/*/evaluated/*/attention.npz")
    longest = max(load_maps(maps_file), key=lambda each: len(each.source_tokens))
    save_png(heat_map_figure(longest), into / "reverse_heat_map.png")


def compare_experiments(clone: Path) -> Path:
    """The page of `dvc plots diff` of two experiments, `dot` and `bahdanau`."""
    run("git", "clone", "--quiet", ROOT, clone, cwd=ROOT)
    dvc = (sys.executable, "-m", "dvc")
    overrides = ", ".join(f'"{override}"' for override in SMALL)
    chosen = ("data=copy", "model/attention=dot", f"training.max_steps={STEPS}")
    settings = [f"-S{each}" for each in (*chosen, f"overrides=[{overrides}]")]
    run(*dvc, "exp", "run", "--name", "dot", *settings, cwd=clone)
    run(*dvc, "exp", "run", "--name", "bahdanau", "-S", "model/attention=bahdanau", cwd=clone)
    run(*dvc, "plots", "diff", "dot", "bahdanau", cwd=clone)
    return clone / "dvc_plots" / "index.html"


def take_picture(address: Path, into: Path, vega: Path | None) -> None:
    """What is on the first screen."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SCREEN)  # type: ignore[arg-type]
        page.set_default_timeout(PATIENCE)
        if vega is not None:
            page.route("https://cdn.jsdelivr.net/npm/**", lambda route: answer(route, vega))
        page.goto(address.as_uri())
        page.locator(".vega-embed canvas, .vega-embed svg").first.wait_for()
        page.wait_for_timeout(3000)  # charts are drawn one after the other
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS)
        picture.save(into, optimize=True)
        browser.close()


def answer(route: Route, vega: Path) -> None:
    """Answer a request for `.../npm/<package>@<version>` from the folder."""
    package = route.request.url.rpartition("/")[2].partition("@")[0]
    route.fulfill(path=vega / package / "build" / f"{package}.min.js")


def run(*command: str | Path, cwd: Path) -> None:
    # What git or DVC of the caller's environment name is another repository.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DVC_"))
    }
    # The stages start `python`.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    subprocess.run(command, cwd=cwd, env=environment, check=True)


if __name__ == "__main__":
    main()
