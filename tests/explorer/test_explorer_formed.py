"""How the attention formed: where the maps are found, the answer, and the view."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest
from formed_trainings import (
    SENTENCES,
    TARGET,
    identity_of,
    weights_of,
    write_point,
    write_training,
)
from starlette.testclient import TestClient

from attnlab.api import load
from attnlab.evaluation.attention_map import load_maps, save_maps
from attnlab.explorer import export
from attnlab.explorer.export import page_with
from attnlab.explorer.formed import formed, training_of
from attnlab.explorer.server import application

TEXT = "나는 학교 에 간다"


@pytest.fixture
def point(translator_folder, tmp_path):
    """A model with the maps of four validations."""
    return write_point(tmp_path, translator_folder, "a", [0, 100, 200, 300], 1.0)


@pytest.fixture
def other_point(translator_folder, tmp_path):
    """Another one, which was validated less often."""
    return write_point(tmp_path, translator_folder, "b", [0, 250], 2.0)


def loaded(*folders):
    return {str(folder): load(folder) for folder in folders}


def test_answer_has_the_maps_of_every_sentence_and_the_curves(point):
    client = TestClient(application(loaded(point)), base_url="http://localhost")
    answer = client.post("/api/formed", json={"model": str(point)}).json()
    assert answer["steps"] == [0, 100, 200, 300]
    assert [sentence["source"] for sentence in answer["sentences"]] == SENTENCES
    for number, sentence in enumerate(answer["sentences"]):
        for step, attention_map in zip(answer["steps"], sentence["maps"], strict=True):
            assert attention_map["target"] == TARGET
            assert attention_map["marks"] == {"sure": [], "possible": [], "wrong": [1]}
            expected = weights_of(number, step)
            np.testing.assert_allclose(attention_map["attention"], expected, atol=0.00051)
    assert answer["loss"] == [[100, 1.0], [200, 0.5], [300, 0.33333]]
    assert answer["metric"] == {"name": "bleu", "points": [[100, 10.0], [200, 20.0], [300, 30.0]]}


def test_metric_is_the_monitor_of_the_training(point):
    training = training_of(point)
    with (training / "history.csv").open("a") as file:
        file.write("300,1,validation/free_running/exact_match,0.5\n")
    answer = formed(training, {"training": {"monitor": "exact_match"}})
    assert answer["metric"] == {"name": "exact_match", "points": [(300, 0.5)]}


def test_training_without_curves_has_maps_alone(point):
    training = training_of(point)
    (training / "history.csv").unlink()
    answer = formed(training, None)
    assert answer["loss"] is None
    assert answer["metric"] is None
    assert len(answer["sentences"]) == len(SENTENCES)


def test_validation_without_the_sentence_has_no_map_of_it(point):
    training = training_of(point)
    second_validation = training / "attention" / "step_000100.npz"
    save_maps(load_maps(second_validation)[:1], second_validation)
    first, second = formed(training, None)["sentences"]
    assert None not in first["maps"]
    assert [each is None for each in second["maps"]] == [False, True, False, False]


def test_long_training_is_thinned_and_keeps_its_first_and_last_validation(point):
    steps = formed(training_of(point), None, most=3)["steps"]
    assert len(steps) == 3
    assert (steps[0], steps[-1]) == (0, 300)


def test_copied_model_finds_its_training_by_its_identity(translator_folder, tmp_path):
    copied = shutil.copytree(translator_folder, tmp_path / "runs" / "lessons" / "dot")
    assert training_of(copied) is None
    training = tmp_path / "runs" / "points" / identity_of(copied) / "training"
    write_training(training, [0, 10])
    assert training_of(copied) == training
    built = shutil.copytree(translator_folder, tmp_path / "build" / "model")
    write_training(tmp_path / "build" / "training", [0, 10])
    assert training_of(built) == training  # not that beside it, which may be another model's


def test_model_without_maps_has_no_view_and_a_refusal(translator_folder, tmp_path):
    alone = shutil.copytree(translator_folder, tmp_path / "model")
    (tmp_path / "training").mkdir()  # of a training that kept no maps
    client = TestClient(application(loaded(alone)), base_url="http://localhost")
    assert not client.get("/api/models").json()[0]["has_formed"]
    answer = client.post("/api/formed", json={"model": str(alone)})
    assert answer.status_code == 400
    assert "no attention" in answer.json()["error"]


def open_view(seen, model, **state):
    wanted = {"view": "formed", "model": str(model), "text": TEXT, **state}
    seen.page.goto("about:blank")
    seen.page.goto(f"{seen.address}#{quote(json.dumps(wanted))}")
    seen.wait(TEXT)


def rounded(weights):
    return weights.round(3)


def stands_at(seen, step):
    return seen.page.locator(f"input[aria-valuetext='After {step} training steps']")


def test_slider_goes_through_the_validations_by_keyboard(visit, point):
    seen = visit(loaded(point))
    open_view(seen, point)
    slider = seen.page.get_by_role("slider")
    assert slider.get_attribute("aria-valuetext") == "After 300 training steps"
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 300)), atol=1e-6)
    slider.focus()
    seen.page.keyboard.press("ArrowLeft")
    seen.settle()
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 200)), atol=1e-6)
    assert seen.page.locator("figure[data-key=loss] figcaption b").inner_text() == "0.5"
    assert seen.page.locator("figure[data-key=metric] figcaption b").inner_text() == "20"
    slider.focus()
    seen.page.keyboard.press("Home")
    seen.settle()
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 0)), atol=1e-6)
    assert seen.page.locator("figure[data-key=loss] figcaption b").inner_text() == "–"
    assert seen.page.get_by_role("button", name="Undo").is_disabled()


def test_pointing_at_a_curve_shows_the_step_there(visit, point):
    seen = visit(loaded(point))
    open_view(seen, point)
    box = seen.page.locator("figure[data-key=loss] svg").bounding_box()
    y = box["y"] + box["height"] / 2
    start, end = (box["x"] + box["width"] * share / 300 for share in (38, 282))  # the axis
    seen.page.mouse.move(start + 0.36 * (end - start), y)
    stands_at(seen, 300).wait_for()  # no button is held
    seen.page.mouse.down()
    stands_at(seen, 100).wait_for()
    seen.page.mouse.move(start + 0.7 * (end - start), y)
    stands_at(seen, 200).wait_for()
    seen.page.mouse.up()


def test_another_sentence_is_shown_at_the_same_step(visit, point):
    seen = visit(loaded(point))
    open_view(seen, point, formed={"sentence": 0, "step": 100})
    choice = seen.page.get_by_role("combobox", name="Sentence")
    assert choice.locator("option").all_inner_texts() == ["나는 학교 에", "나는 집"]
    choice.select_option("1")
    seen.settle()
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(1, 100)), atol=1e-6)


def test_play_starts_anew_pauses_and_ends_at_the_last_validation(visit, point):
    seen = visit(loaded(point))
    seen.page.clock.install(time=0)
    open_view(seen, point)
    seen.page.clock.pause_at(3_600_000)
    button = seen.page.locator("button.play")
    button.click()
    stands_at(seen, 0).wait_for()
    seen.page.clock.run_for(700)
    stands_at(seen, 100).wait_for()

    button.filter(has_text="Pause").click()
    button.filter(has_text="Play").wait_for()
    seen.page.clock.run_for(5000)
    assert stands_at(seen, 100).count() == 1

    button.click()
    for step in (200, 300):
        stands_at(seen, step).wait_for()
        seen.page.clock.run_for(700)
    button.filter(has_text="Play").wait_for()


def test_play_stops_in_another_view(visit, point):
    seen = visit(loaded(point))
    seen.page.clock.install(time=0)
    open_view(seen, point, formed={"sentence": 0, "step": 0})
    seen.page.clock.pause_at(3_600_000)
    seen.page.locator("button.play").click()
    stands_at(seen, 100).wait_for()
    seen.page.get_by_role("tab", name="Heat map").click()
    seen.page.clock.run_for(5000)
    seen.page.get_by_role("tab", name="As it formed").click()
    stands_at(seen, 100).wait_for()
    seen.page.locator("button.play").filter(has_text="Play").wait_for()


def test_nothing_moves_by_itself_for_a_person_who_wants_less_motion(visit, point):
    seen = visit(loaded(point), reduced_motion="reduce")
    open_view(seen, point, formed={"sentence": 0, "step": 0})
    seen.page.get_by_role("button", name="Next validation").click()
    seen.settle()
    seen.page.wait_for_timeout(900)
    assert stands_at(seen, 100).count() == 1


def test_two_models_stand_at_the_same_step_each_with_its_newest_validation(
    visit, point, other_point
):
    seen = visit(loaded(point, other_point))
    open_view(seen, point, formed={"sentence": 0, "step": 200})
    assert seen.page.get_by_role("slider").get_attribute("max") == "4"  # 0, 100, 200, 250, 300
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 200)), atol=1e-6)
    np.testing.assert_allclose(seen.table("formed-1"), rounded(weights_of(0, 0)), atol=1e-6)
    seen.page.get_by_role("slider").press("ArrowRight")
    seen.settle()
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 200)), atol=1e-6)
    np.testing.assert_allclose(seen.table("formed-1"), rounded(weights_of(0, 250, 2)), atol=1e-6)
    assert seen.page.locator("figure[data-key=loss] svg path[class^=model]").count() == 2
    seen.page.get_by_role("checkbox").nth(1 + 1).uncheck()  # the first one is of the colours
    seen.settle()
    assert seen.page.locator("figure[data-key=formed-1]").count() == 0


def test_csv_and_picture_have_the_maps_of_the_step_shown(visit, point, other_point, tmp_path):
    seen = visit(loaded(point, other_point))
    open_view(seen, point, formed={"sentence": 1, "step": 200})
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name="CSV", exact=True).click()
    download.value.save_as(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == [f"{point}, step 200", *SENTENCES[1]]
    assert rows[len(TARGET) + 2] == [f"{other_point}, step 0", *SENTENCES[1]]
    found = np.array([row[1:] for row in rows[1 : len(TARGET) + 1]], dtype=float)
    np.testing.assert_array_equal(found, rounded(weights_of(1, 200)))
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name="PNG").click()
    download.value.save_as(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_classifier_has_the_view_without_a_text(visit, classifier_folder, tmp_path):
    model = write_point(tmp_path, classifier_folder, "c", [0, 100], 1.0)
    seen = visit(loaded(model))
    seen.page.goto(f"{seen.address}#{quote(json.dumps({'text': ''}))}")
    seen.page.get_by_role("tab", name="As it formed").click()
    seen.settle()
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 100)), atol=1e-6)


def test_saved_page_has_the_slider(visit, point, tmp_path):
    seen = visit(loaded(point))
    open_view(seen, point)
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name="Save page").click()
    download.value.save_as(tmp_path / "a.html")
    seen.page.goto((tmp_path / "a.html").as_uri())
    seen.wait(TEXT)
    seen.page.get_by_role("slider").press("Home")
    seen.settle()
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 0)), atol=1e-6)


def test_exported_page_has_the_view(visit_file, point, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(page_with(loaded(point)), encoding="utf-8")
    seen = visit_file(page)
    seen.page.get_by_role("tab", name="As it formed").click()
    seen.settle()
    seen.page.get_by_role("slider").press("ArrowLeft")
    seen.settle()
    np.testing.assert_allclose(seen.table("formed-0"), rounded(weights_of(0, 200)), atol=1e-6)


def test_export_takes_fewer_validations_where_all_are_too_large(point, monkeypatch):
    whole = len(json.dumps(formed(training_of(point), None)))
    monkeypatch.setattr(export, "MOST_FORMED", whole // 2)
    monkeypatch.setattr(export, "VALIDATIONS", (100, 2))
    page = page_with(loaded(point))
    assert '"steps":[0,300]' in page


def test_export_leaves_out_maps_that_are_too_large_and_says_so(point, monkeypatch, capsys):
    monkeypatch.setattr(export, "MOST_FORMED", 100)
    page = page_with(loaded(point))
    assert '"has_formed":false' in page
    assert '"formed":null' in page
    assert f"{point}: the page leaves out how the attention formed" in capsys.readouterr().out


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_view_breaks_no_rule_of_accessibility(visit, point, other_point, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    context = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    seen = visit(loaded(point, other_point), **context)
    for models in ([], [str(point)]):
        open_view(seen, point, models=models, formed={"sentence": 0, "step": 100})
        found = axe.Axe().run(seen.page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:160]) for each in found] == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_models_that_wrote_targets_of_other_lengths_have_cells_of_one_size(
    visit, point, other_point
):
    first = min((point.parent / "training").rglob("*.npz"))
    maps = load_maps(first)
    weights = np.full((12, len(maps[0].source_tokens)), 0.25)
    maps[0] = replace(maps[0], target_tokens=["long"] * 12, weights=weights, wrong_targets=[])
    save_maps(maps, first)
    seen = visit(loaded(point, other_point))
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="As it formed").click()
    cells = seen.page.locator("figure.heat-map .heat-cells")
    cells.nth(1).wait_for()
    seen.settle()
    heights = [cells.nth(i).bounding_box()["height"] / len(TARGET) for i in range(cells.count())]
    assert heights[0] == pytest.approx(heights[1], abs=0.5)


@pytest.mark.parametrize(
    ("metric", "names"),
    [
        ("exact_match", {"en": "exact match", "ko": "정확히 일치한 비율"}),
        ("bleu", {"en": "BLEU", "ko": "BLEU"}),
        ("my_metric", {"en": "my metric", "ko": "my metric"}),
    ],
)
def test_metric_is_called_in_the_language_of_the_page(visit, translator, metric, names):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    script = """async ([language, metric]) => {
        const words = await import("explorer/words.js");
        words.setLanguage(language);
        return words.metricName(metric);
    }"""
    for language, name in names.items():
        assert seen.page.evaluate(script, [language, metric]) == name
