"""The downloads of the explorer: link, picture, numbers, and a page that needs no model."""

from __future__ import annotations

import csv
import io
import re
import struct

import numpy as np
import pytest

from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.translation import analysis
from explored_models import TABS

TEXT = 'May 13, "2026" <b>'


def saved(seen, name, path):
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name=name, exact=True).click()
    download.value.save_as(path)
    return path


def test_link_shows_the_same_again(visit, translator):
    ours = translator()
    seen, base = visit({"a": ours}), analysis.translate(ours, TEXT)
    seen.open(TEXT)
    seen.page.locator(".likeliest .choice").nth(1).click()
    seen.page.locator("figure[data-key=branch]").wait_for()
    link = seen.page.url
    seen.page.goto("about:blank")
    seen.page.goto(link)
    seen.page.locator("figure[data-key=branch]").wait_for()
    other = base["likeliest"][0][1][1]
    branch = analysis.translate(ours, TEXT, Intervention(force={0: other}))
    np.testing.assert_allclose(seen.table("branch"), branch["attention"], atol=1e-5)


def test_csv_has_the_numbers_of_the_map(visit, translator, tmp_path):
    ours = translator()
    seen, answer = visit({"a": ours}), ours(TEXT)
    seen.open(TEXT)
    with saved(seen, "CSV", tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = (row for row in csv.reader(file) if row)
    assert head[1:] == answer.source_tokens
    assert [row[0] for row in rows] == answer.tokens
    np.testing.assert_allclose(
        np.array([row[1:] for row in rows], dtype=float), answer.attention, atol=1e-5
    )


def tables_in(path):
    """The tables of a saved file, between its empty lines."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    tables = [[]]
    for row in rows:
        if row:
            tables[-1].append(row)
        else:
            tables.append([])
    return tables


def test_csv_of_effects_has_numbers_that_a_program_reads(visit, translator, tmp_path):
    ours = translator()
    seen, base = visit({"a": ours}), analysis.translate(ours, TEXT)
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.get_by_role("button", name="Uniform").click()
    seen.page.locator(".steps .changed").wait_for()
    seen.settle()
    uniform = [round(1 / len(base["source"]), 6)] * len(base["source"])
    intervene = Intervention(weights={0: uniform})
    after = analysis.score(ours, TEXT, base["ids"], intervene)
    effects, weights = tables_in(saved(seen, "CSV", tmp_path / "a.csv"))
    assert effects[0] == ["target", "before", "after", "change"]
    assert [row[0] for row in effects[1:]] == base["target"]
    numbers = np.array([row[1:] for row in effects[1:]], dtype=float)
    np.testing.assert_array_equal(numbers[:, 0], base["log_probs"])
    np.testing.assert_array_equal(numbers[:, 1], after["log_probs"])
    np.testing.assert_allclose(numbers[:, 2], numbers[:, 1] - numbers[:, 0], atol=1e-12)
    found = np.array([row[1:] for row in weights[1:]], dtype=float)
    np.testing.assert_array_equal(found, after["attention"])


def test_csv_of_one_step_has_a_cell_a_component(visit, translator, tmp_path):
    ours = translator(attention="general")
    seen = visit({"a": ours})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="One step").click()
    seen.page.locator(".sheet").wait_for()
    seen.settle()
    tables = tables_in(saved(seen, "CSV", tmp_path / "a.csv"))
    (vectors,) = [table for table in tables if table[0][0] == "h"]
    names, *rows = vectors
    assert len(rows) == len(ours(TEXT).source_tokens)
    assert len(set(names)) == len(names)
    assert all(len(row) == len(names) for row in rows)
    numbers = np.array([row[1:] for row in rows], dtype=float)  # no text, no glued vector
    assert np.isfinite(numbers).all()


@pytest.mark.parametrize(("view", "is_saved"), [("Heat map", False), ("Beam", True)])
def test_picture_and_numbers_are_saved_where_a_view_has_some(visit, translator, view, is_saved):
    seen = visit({"a": translator(decoder="no_attention")})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name=view).click()
    seen.page.locator(f"[role=tab][aria-selected=true]:text-is('{view}')").wait_for()
    seen.settle()
    for name in ("PNG", "CSV"):
        button = seen.page.get_by_role("button", name=name, exact=True)
        assert button.is_enabled() == is_saved, name


@pytest.mark.parametrize("view", TABS)
def test_csv_of_every_view_has_no_number_as_text(visit, translator, tmp_path, view):
    seen = visit({"a": translator(), "b": translator(attention="dot", projection=3)})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name=view).click()
    seen.page.locator(f"[role=tab][aria-selected=true]:text-is('{view}')").wait_for()
    seen.settle()
    path = saved(seen, "CSV", tmp_path / "a.csv")
    assert "\u2212" not in path.read_text(encoding="utf-8")
    for table in tables_in(path):
        widths = {len(row) for row in table}
        assert len(widths) == 1
        cells = [cell for row in table for cell in row]
        assert not any(re.match(r"'[+-]?[\d.]", cell) for cell in cells)


def test_csv_of_strange_tokens_is_read_back(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    rows = [["a", "b,c", 'd"e', "f\ng", "-", "=", "+"], [0.1, -0.25, 1e-7, 1, 0, 12.5, -1e21]]
    script = "async rows => (await import('explorer/csv.js')).csvOf([rows])"
    text = seen.page.evaluate(script, rows)
    head, numbers = list(csv.reader(io.StringIO(text, newline="")))
    assert head == rows[0]
    assert [float(number) for number in numbers] == rows[1]
    formula = seen.page.evaluate(script, [["=1+1", "-cmd", "-5"]])
    assert next(csv.reader(io.StringIO(formula))) == ["'=1+1", "'-cmd", "-5"]


@pytest.mark.parametrize("view", TABS)
def test_every_view_is_saved_as_picture_and_numbers(visit, translator, tmp_path, view):
    seen = visit({"a": translator(), "b": translator(attention="dot", projection=3)})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name=view).click()
    seen.page.locator(f"[role=tab][aria-selected=true]:text-is('{view}')").wait_for()
    seen.settle()
    picture = saved(seen, "PNG", tmp_path / "a.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 1000
    assert height > 200
    assert len(picture) > 10_000  # an empty picture of this size has about 5,000 bytes
    assert saved(seen, "CSV", tmp_path / "a.csv").read_text(encoding="utf-8-sig").count("\n") > 3


def test_saved_page_shows_every_view_without_the_model(visit, translator, tmp_path):
    models = {
        "runs/a/model": translator(),
        "runs/b/model": translator(attention="dot", projection=3),
    }
    seen, answers = visit(models), [model(TEXT) for model in models.values()]
    seen.open(TEXT)
    path = saved(seen, "Save page", tmp_path / "a.html")
    seen.page.goto(path.as_uri())
    seen.wait(TEXT)
    assert seen.page.locator(".translation").inner_text().strip() == answers[0].text.strip()
    np.testing.assert_allclose(seen.table("own"), answers[0].attention, atol=1e-5)
    for view in TABS:
        seen.page.get_by_role("tab", name=view).click()
        seen.page.locator(f"[role=tab][aria-selected=true]:text-is('{view}')").wait_for()
        seen.settle()
        assert seen.page.get_by_role("alert").count() == 0, view
        assert seen.page.locator("main figure, main table").count() > 0, view
        if view == "Models":
            np.testing.assert_allclose(seen.table("model-1"), answers[1].attention, atol=1e-5)
    assert seen.page.locator("textarea").get_attribute("readonly") is not None
    assert seen.page.get_by_role("button", name="Save page").count() == 0


def test_saved_page_of_a_classifier_works_without_the_model(visit, classifier, tmp_path):
    seen = visit({"a": classifier})
    seen.open("good film")
    path = saved(seen, "Save page", tmp_path / "a.html")
    seen.page.goto(path.as_uri())
    seen.wait("good film")
    shown = seen.page.locator("figure[data-key=own] .tokens > *").evaluate_all(
        "all => all.map(one => one.dataset.weight)"
    )
    np.testing.assert_allclose(
        np.array(shown, dtype=float), classifier("good film").attention, atol=1e-5
    )
