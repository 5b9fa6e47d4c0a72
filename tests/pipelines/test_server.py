"""A sweep of two workers against MLflow as a server.

The server runs over PostgreSQL where it is installed. The tests read what is stored, and click on
its pages in a real browser.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from entry_points import ANY_ATTENTION, PIPELINES, the_sweep
from mlflow import MlflowClient
from optuna.trial import TrialState
from PIL import Image
from servers import free_port, mlflow_server, wait_for_port
from sqlalchemy import create_engine, text

from attnlab.config.names import readable_name
from attnlab.experiment.composition import compose
from attnlab.runs.shared_views import charts_page
from attnlab.runs.shown_metrics import shown_name
from attnlab.tasks.translation.task import Translation
from attnlab.training.spool import SPOOL_NAME, MetricSpool
from chromium import CHROMIUM, started_browser
from made_search import Leader

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.slow

RUNS = [
    readable_name(
        compose([*ANY_ATTENTION, f"model/attention={score}", f"seed={seed}"]).logged,
        {"model/attention": score, "seed": str(seed)},
    )
    for score in ("bahdanau", "dot")
    for seed in (1, 2)
]
# What the pages say of themselves wherever they are: MLflow asks who is logged in, where nobody can
# log in, and its observers of sizes give up a round when much changes at once.
HARMLESS = ("/users/current", "ResizeObserver loop")


def program(name: str) -> str | None:
    """Of PostgreSQL; Debian keeps those of the server out of PATH."""
    places = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: float(place.parent.name)
    )
    return shutil.which(
        name, path=os.pathsep.join([*map(str, reversed(places)), os.environ["PATH"]])
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a fresh PostgreSQL; of an sqlite database where it is not installed."""
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        yield f"sqlite:///{tmp_path_factory.mktemp('sqlite')}/mlflow.db"
        return
    # As root it refuses to run, so it runs as the user that its package made.
    user = "postgres" if os.geteuid() == 0 else None
    folder = tmp_path_factory.mktemp("postgres")
    if user is not None:
        for place in (folder, *folder.parents[: len(folder.parents) - 2]):
            place.chmod(place.stat().st_mode | 0o055)  # pytest's own are closed to others
        shutil.chown(folder, user)
    cluster, log, port = folder / "cluster", folder.with_suffix(".log"), free_port()
    made = [
        initdb,
        "--pgdata",
        str(cluster),
        "--auth",
        "trust",
        "--username",
        "attnlab",
        "--encoding",
        "UTF8",
    ]
    subprocess.run([*made, "--no-sync"], user=user, cwd=folder, check=True, capture_output=True)
    serve = [
        postgres,
        "-D",
        str(cluster),
        "-k",
        str(folder),
        "-p",
        str(port),
        "-c",
        "listen_addresses=127.0.0.1",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*serve, "-c", "fsync=off"], user=user, cwd=folder, stdout=out, stderr=out
        )
        try:
            wait_for_port(port, process, log)
            yield f"postgresql+psycopg2://attnlab@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(30)


@dataclass(frozen=True)
class Tracked:
    """A sweep in a folder, and the address of the server that has its runs."""

    folder: Path
    address: str


@pytest.fixture(scope="module")
def tracked(
    database: str, tmp_path_factory: pytest.TempPathFactory, warm_python: Path
) -> Iterator[Tracked]:
    """A sweep of four points by two workers."""
    place = tmp_path_factory.mktemp("server")
    folder = place / "project"
    folder.mkdir()
    artifacts = ("--artifacts-destination", str(place / "artifacts"))
    with mlflow_server(place, database, *artifacts, "--workers", "2") as address:
        command = [
            warm_python,
            PIPELINES / "train.py",
            "-m",
            *ANY_ATTENTION,
            "launcher=joblib",
            "launcher.workers=2",
            "model/attention=dot,bahdanau",
            "seed=1,2",
            "tracking.heat_map_sentences=1",
            f"tracking.uri={address}",
        ]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        yield Tracked(folder, address)


def test_two_workers_write_a_sweep_through_a_server_and_nothing_is_missing(
    tracked: Tracked,
) -> None:
    folder = tracked.folder
    sweep = the_sweep(folder)
    client = MlflowClient(tracking_uri=tracked.address)
    experiment = client.get_experiment_by_name("attnlab").experiment_id
    found = {run.info.run_id: run for run in client.search_runs([experiment])}
    parent = found.pop(sweep.read().run_id)
    assert parent.info.status == "FINISHED"
    assert set(found) == {job.run_id for job in sweep.jobs()}
    assert len(found) == 4
    for job in sweep.jobs():
        run = found[job.run_id]
        assert run.info.status == "FINISHED"
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert {"attention", "seed", "model.encoder.hidden_size"} <= set(run.data.params)
        spooled, _ = MetricSpool(folder / "runs" / "points" / str(job.identity) / SPOOL_NAME).read()
        expected: dict[str, list[tuple[int, float]]] = {}
        for line in spooled:
            for name, value in line.metrics.items():
                expected.setdefault(shown_name(name), []).append((line.step, value))
        for name, points in expected.items():
            stored = client.get_metric_history(run.info.run_id, name)
            assert sorted((point.step, point.value) for point in stored) == sorted(points), name
        artifacts = {info.path for info in client.list_artifacts(run.info.run_id)}
        assert {"attention", "evaluation", "images", "report"} <= artifacts
        assert "evaluation/metrics.json" in {
            info.path for info in client.list_artifacts(run.info.run_id, "evaluation")
        }
        assert run.outputs.model_outputs


@pytest.fixture
def page(tracked: Tracked) -> Iterator[playwright.Page]:
    """The table of runs, with the sweep's own run opened so that its points are visible.

    Errors on any page fail the test.
    """
    if CHROMIUM is None:
        pytest.skip("Debian's chromium is not installed")
    errors: list[str] = []
    with started_browser() as browser:
        page = browser.new_page(viewport={"width": 1800, "height": 1200})
        page.set_default_timeout(60_000)
        playwright.expect.set_options(timeout=60_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda said: (
                errors.append(f"{said.text} {said.location}") if said.type == "error" else None
            ),
        )
        open_runs(page, tracked.address)
        yield page
    assert [error for error in errors if not any(words in error for words in HARMLESS)] == []


def open_runs(page: playwright.Page, server: str) -> None:
    page.goto(f"{server}/#/experiments/1/runs?workflowType=machine_learning&compareRunsMode=TABLE")
    sweep = page.get_by_role("link", name="sweep · attention × seed")
    sweep.wait_for()
    if not run_link(page, RUNS[0]).is_visible():
        page.locator(".ag-cell").filter(has=sweep).get_by_role("button").first.click()
    for name in RUNS:
        run_link(page, name).wait_for()


def run_link(page: playwright.Page, name: str) -> playwright.Locator:
    """The link to a run; the model that it logged has the same name, in a column of its own."""
    return page.locator(".ag-cell[col-id*='Run Name']").get_by_role("link", name=name)


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
    playwright.expect(page.locator(".ag-cell[col-id*='seed']").filter(has_text="2")).to_have_count(
        2
    )


def coloured(png: bytes) -> int:
    """Pixels with a colour, the bar of colours at the right left out."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    pixels = pixels[:, : pixels.shape[1] * 8 // 10]
    return int((pixels.max(-1) - pixels.min(-1) > 30).sum())


def test_heat_map_opens_among_the_artifacts(page: playwright.Page) -> None:
    run_link(page, RUNS[0]).click()
    page.get_by_role("tab", name="Artifacts").click()
    open_artifact(page, "attention", "step_000004", "attention.html")
    cells = page.frame_locator("iframe").locator(".heat-cells g")
    cells.first.wait_for()
    assert cells.count() > 3


def open_view(page: playwright.Page, mode: str) -> None:
    """Open the page that start lines name, in a mode of MLflow's, `CHART` or `TABLE`."""
    server = page.url.partition("/#")[0]
    place = charts_page("1", Translation.view).replace("CHART", mode)
    page.goto("about:blank")  # another fragment alone loads no page
    page.goto(f"{server}/{place}")


def test_charts_of_the_view_begin_with_bars_of_all_runs(page: playwright.Page) -> None:
    open_view(page, "CHART")
    charts = page.get_by_test_id("experiment-view-compare-runs-card")
    first = charts.filter(has_text="test/bleu").first
    playwright.expect(first.locator("g.trace.bars .point")).to_have_count(len(RUNS))


def test_view_compares_the_attention_of_all_runs_in_one_grid(page: playwright.Page) -> None:
    open_view(page, "CHART")
    page.get_by_placeholder("Search metric charts").fill("test/attention")
    pictures = page.locator("img[src*='get-artifact']")
    playwright.expect(pictures).to_have_count(len(RUNS))
    assert coloured(pictures.first.screenshot()) > 30


def test_table_of_the_view_has_choices_and_numbers(page: playwright.Page) -> None:
    page.set_viewport_size({"width": 3000, "height": 1200})  # MLflow draws only columns in sight
    open_view(page, "TABLE")
    for column, shown in (("attention", r"bahdanau|dot"), ("padding", "pre_post")):
        cells = page.locator(f".ag-cell[col-id*='params'][col-id*='{column}']")
        playwright.expect(cells.filter(has_text=re.compile(shown))).to_have_count(len(RUNS))
    bleu = page.locator(".ag-cell[col-id*='test/bleu']")
    playwright.expect(bleu.filter(has_text=re.compile(r"^\d"))).to_have_count(len(RUNS))


def open_artifact(page: playwright.Page, *places: str) -> None:
    """Click from folder to folder to a file.

    MLflow draws the tree anew while it comes, and a click on what is drawn anew is lost: a person
    would click again.
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


def test_leaders_of_a_search_share_a_study_in_the_database(database: str) -> None:
    """The study is in PostgreSQL where that is installed, in a database of its own."""
    address = database.replace("/mlflow.db", "/search.db").replace("/postgres", "/search")
    if database.startswith("postgresql"):
        server = create_engine(database, isolation_level="AUTOCOMMIT")
        with server.connect() as connection:
            connection.execute(text("CREATE DATABASE search"))
        server.dispose()
    one, other = (Leader(address, trials=4, sampler="random") for _ in range(2))
    runs = [leader.in_batches() for leader in (one, other)]
    for _ in itertools.zip_longest(*runs):
        pass
    assert one.states() == [TrialState.COMPLETE] * 4
    assert min(len(one.points), len(other.points)) >= 3
    again = Leader(address, trials=4).run()
    assert again.points == []
    for leader in (one, other, again):
        leader.close()  # or the server waits for it
