"""The explorer's page in a browser: what it shows equals the API's answers."""

from __future__ import annotations

import json
from urllib.parse import quote

import numpy as np
import pytest

from attnlab.model.attention.intervention import Intervention

TEXT = "May 13, 2026"


def test_typed_sentence_shows_translation_map_and_likeliest_tokens(visit, translator):
    ours = translator()
    seen, answer = visit({"a": ours}), ours(TEXT)
    seen.open(TEXT)
    assert seen.page.locator(".translation").inner_text().strip() == answer.text.strip()
    np.testing.assert_allclose(seen.table("own"), answer.attention, atol=1e-5)
    assert seen.page.locator(".heat-labels > *").all_inner_texts() == answer.tokens
    probabilities = [
        float(text) for text in seen.page.locator(".likeliest .number").all_inner_texts()
    ]
    assert len(probabilities) == 5
    shown = dict(
        zip(seen.page.locator(".likeliest bdi").all_inner_texts(), probabilities, strict=True)
    )
    expected = np.exp(ours.score(TEXT, answer.text).log_probs[0])
    assert shown[answer.tokens[0]] == pytest.approx(expected, abs=6e-5)


def test_arrow_keys_move_the_cursor_and_announce_the_value(visit, translator):
    ours = translator()
    seen, answer = visit({"a": ours}), ours(TEXT)
    seen.open(TEXT)
    seen.page.locator("svg.heat-cells").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowUp", "ArrowUp"):
        seen.page.keyboard.press(key)
    announced = seen.page.locator("figure output")
    assert announced.get_attribute("aria-live") == "polite"
    assert (
        announced.inner_text()
        == f"{answer.tokens[0]} ← {answer.source_tokens[1]}: {answer.attention[0, 1]:.4f}"
    )


def test_tokens_are_shown_as_text_never_as_markup(visit, translator):
    seen = visit({"a": translator()})
    seen.open("<b>May</b><script>")
    assert seen.page.locator(".heat-heads b, main script").count() == 0
    assert "".join(seen.page.locator(".heat-heads > *").all_inner_texts()).startswith("<b>May</b><")


def test_other_token_translates_the_rest_anew_and_an_unknown_one_is_refused(visit, translator):
    ours = translator()
    seen, base = visit({"a": ours}), ours(TEXT)
    seen.open(TEXT)
    seen.page.locator(".heat-labels button").nth(1).click()
    seen.settle()
    chosen = seen.page.locator(".likeliest .choice[aria-pressed=false]").first
    token = chosen.locator("bdi").inner_text()
    chosen.click()
    seen.page.locator("figure[data-key=branch]").wait_for()
    branch = ours(TEXT, intervene=Intervention(force={0: base.tokens[0], 1: token}))
    np.testing.assert_allclose(seen.table("branch"), branch.attention, atol=1e-5)
    np.testing.assert_allclose(seen.table("own"), base.attention, atol=1e-5)
    assert (
        seen.page.locator("figure[data-key=branch] .heat-labels > *").all_inner_texts()
        == branch.tokens
    )
    seen.page.locator("input[name=token]").fill("일")
    seen.page.keyboard.press("Enter")
    typed = ours(TEXT, intervene=Intervention(force={0: base.tokens[0], 1: "일"}))
    seen.page.get_by_text(f"with your token: {typed.text}").wait_for()
    np.testing.assert_allclose(seen.table("branch"), typed.attention, atol=1e-5)
    seen.page.locator("input[name=token]").fill("ん")
    seen.page.keyboard.press("Enter")
    assert "is no token that the model can write" in seen.page.get_by_role("alert").inner_text()
    assert all("400" in problem for problem in seen.problems)  # the browser reports the refusal
    seen.problems.clear()


def test_models_are_compared_on_one_sentence(visit, translator):
    models = {
        f"runs/{name}/model": translator(attention=name, projection=4)
        for name in ("dot", "general", "bahdanau", "cosine")
    } | {"runs/none/model": translator(decoder="no_attention")}
    seen = visit(models)
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Models").click()
    seen.page.locator("figure[data-key=model-3]").wait_for()
    for i, (name, model) in enumerate(list(models.items())[:4]):
        np.testing.assert_allclose(seen.table(f"model-{i}"), model(TEXT).attention, atol=1e-5)
        caption = seen.page.locator(f"figure[data-key=model-{i}] figcaption").inner_text()
        assert f"{name.split('/')[1]} · " in caption
        assert caption.splitlines()[0].lower().endswith(f"· {name.split('/')[1]}")
    assert seen.page.locator("fieldset input:disabled").count() == 2  # the chosen one, and a fifth
    seen.page.get_by_role("checkbox", name="general").uncheck()
    seen.page.get_by_role("checkbox", name="none").check()
    seen.page.get_by_text("This model has no attention.").wait_for()
    # The chosen one is always shown
    seen.page.locator("header select").select_option("runs/general/model")
    seen.page.locator("figcaption", has_text="general · General").wait_for()
    assert seen.page.locator("main figure").count() == 4


def test_menu_has_the_names_of_the_experiments_and_the_paths_of_those_that_share_one(
    visit, translator
):
    config = {"model": {"attention": {"_target_": "attnlab.model.attention.dot.DotScore"}}}
    models = {f"runs/{number}/model": translator() for number in range(4)}
    for name, seed in (("runs/0/model", 1), ("runs/1/model", 2), ("runs/2/model", 2)):
        models[name].config = {**config, "seed": seed}
    seen = visit(models)
    seen.open(TEXT)
    names = seen.page.locator("header select option").all_inner_texts()
    assert names[:3] == ["dot · seed 1", "dot · seed 2 (1)", "dot · seed 2 (2)"]
    assert names[3] == "3 · Bahdanau"  # whose config is not known


def test_interface_switches_to_korean_and_to_dark(visit, translator):
    seen = visit({"a": translator()}, color_scheme="light")
    seen.open(TEXT)
    assert seen.page.locator("html").get_attribute("lang") == "en"
    light = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    seen.page.get_by_role("button", name="한국어").click()
    seen.page.get_by_role("button", name="밝게 또는 어둡게").click()
    seen.page.get_by_text("확률이 높은 토큰").or_(seen.page.get_by_text("원문")).first.wait_for()
    seen.settle()
    assert seen.page.locator("html").get_attribute("lang") == "ko"
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != light


def test_narrow_screen_scrolls_the_map_and_not_the_page(visit, translator):
    seen = visit({"a": translator()}, viewport={"width": 390, "height": 844})
    seen.open("March 1, 2026 " * 5)
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 390
    widths = seen.page.locator(".map .heat-scroll").first.evaluate(
        "box => [box.scrollWidth, box.clientWidth]"
    )
    assert widths[0] > widths[1]


def test_newest_text_wins_when_typing_is_faster_than_the_model(visit, translator):
    ours = translator()
    seen = visit({"a": ours})
    seen.open("S")
    seen.page.locator("textarea").press_sequentially("unday, May 13")
    seen.wait("Sunday, May 13")
    assert (
        seen.page.locator(".translation").inner_text().strip()
        == ours("Sunday, May 13").text.strip()
    )


@pytest.mark.parametrize(
    "address", ["", "#%E0%A4%A", "#[1,2", "#3", '#{"model":"b","text":7,"view":"nothing"}']
)
def test_unknown_address_opens_the_page_as_at_the_start(visit, translator, address):
    ours = translator()
    ours.example = "Sunday, March 1, 2026"
    seen = visit({"a": ours})
    seen.page.goto(seen.address + address)
    seen.wait("Sunday, March 1, 2026")
    assert seen.page.get_by_role("tab", name="Heat map").get_attribute("aria-selected") == "true"
    seen.page.evaluate(
        "location.hash = encodeURIComponent("
        "JSON.stringify({text: 'May', model: 'c', view: 'pads'}))"
    )
    seen.wait("May")
    assert seen.page.get_by_role("tab", name="Pads").get_attribute("aria-selected") == "true"


def test_narrow_korean_browser_gets_a_page_that_fits_and_shows_the_chosen_tab(
    visit, translator, corpus
):
    context = {"viewport": {"width": 390, "height": 800}, "locale": "ko-KR"}
    seen = visit({"a": translator(history="coverage", hidden_size=9)}, corpus, **context)
    for view in ("compare", "weights", "patch", "source", "beam", "numbers", "pads", "reference"):
        seen.page.goto("about:blank")
        seen.page.goto(f"{seen.address}#{quote(json.dumps({'view': view, 'text': TEXT}))}")
        seen.wait(TEXT)
        assert seen.page.evaluate("document.documentElement.scrollWidth") == 390, view
        tab = seen.page.locator("[role=tab][aria-selected=true]").bounding_box()
        assert 0 <= tab["x"] <= tab["x"] + tab["width"] <= 390, view
    assert seen.page.get_by_role("tab", name="히트맵").count() == 1
    assert seen.page.locator("html").get_attribute("lang") == "ko"
    head = seen.page.locator(
        ".heat-heads .long bdi"
    ).first  # vertical Korean would stand upside down
    assert head.evaluate("token => getComputedStyle(token).textOrientation") == "sideways"
