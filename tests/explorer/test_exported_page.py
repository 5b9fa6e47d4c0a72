"""An exported page in a browser, opened from a file with the network off."""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pytest

from attnlab.explorer.export import page_with
from attnlab.explorer.exported_page import OLD_BROWSER
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.step_numbers import step_numbers
from explored_models import TABS, build_review_classifier
from windows import windows

TEXT = "May 13, 2026"


@pytest.fixture
def opened(visit_file, tmp_path):
    """Exports models and opens the page."""

    def open_page(models, address="", data=None, **context):
        path = tmp_path / "page.html"
        path.write_text(page_with(models, data), encoding="utf-8")
        return visit_file(path, address, **context)

    return open_page


def test_typed_sentence_is_translated_without_server_and_network(opened, translator):
    ours = translator()
    seen = opened({"a": ours})
    for text in (TEXT, "Sunday <b>", "March 1"):
        seen.type(text)
        answer = ours(text)
        assert seen.page.locator(".translation").inner_text().strip() == answer.text.strip()
        np.testing.assert_allclose(seen.table("own"), answer.attention, atol=1e-5)
    choices = seen.page.locator(".likeliest .choice")
    assert choices.count() == 5


def test_dragged_weight_changes_the_translation_as_in_python(opened, translator):
    ours = translator()
    seen = opened({"a": ours})
    seen.type(TEXT)
    base = analysis.translate(ours, TEXT)
    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.locator(".sliders input").nth(3).fill("0.9")
    row = [
        float(text)
        for text in seen.page.locator(".sliders input").evaluate_all(
            "inputs => inputs.map((input) => input.getAttribute('value'))"
        )
    ]
    assert row[3] == pytest.approx(0.9)
    after = analysis.score(ours, TEXT, base["ids"], Intervention(weights={0: row}))
    expected = [*zip(base["log_probs"], after["log_probs"], strict=True)]
    np.testing.assert_allclose(seen.effects(), expected, atol=6e-5)


def test_hidden_token_gets_no_weight(opened, translator):
    ours = translator()
    seen = opened({"a": ours})
    seen.type(TEXT)
    seen.page.get_by_role("tab", name="Source tokens").click()
    seen.page.locator("main .tokens button").nth(2).click()
    seen.settle()
    base = analysis.translate(ours, TEXT)
    after = analysis.score(ours, TEXT, base["ids"], Intervention(hide=[2]))
    np.testing.assert_allclose(seen.table("edited"), after["attention"], atol=1e-5)


def test_change_goes_for_the_heads_that_are_ticked_as_in_python(opened, translator):
    ours = translator(heads=2)
    seen = opened({"a": ours})
    seen.type(TEXT)
    base = analysis.translate(ours, TEXT)
    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.get_by_label("Uniform", exact=True).check()
    seen.page.get_by_label("Head 0").uncheck()
    seen.settle()
    after = analysis.score(ours, TEXT, base["ids"], Intervention("uniform", heads=[1]))
    of_both = analysis.score(ours, TEXT, base["ids"], Intervention("uniform"))
    assert not np.allclose(after["log_probs"], of_both["log_probs"], atol=2e-4)
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=6e-5)


def test_every_view_but_the_losses_is_there_for_several_models(opened, translator, corpus):
    tokenizers = (corpus.source_tokenizer, corpus.target_tokenizer)
    models = {
        "runs/a/model": translator(tokenizers=tokenizers),
        "runs/b/model": translator(tokenizers=tokenizers, decoder="no_attention"),
    }
    seen = opened(models, data=corpus.folder)
    assert seen.page.get_by_role("tab").all_inner_texts() == TABS
    for view in TABS:
        seen.page.get_by_role("tab", name=view).click()
        seen.settle()
        assert seen.page.get_by_role("alert").count() == 0, view
    assert seen.page.locator("main select option").count() == 7  # the six test pairs
    seen.page.locator("header select").select_option("runs/b/model")
    seen.settle()
    assert seen.page.get_by_role("alert").count() == 0


def test_model_without_attention_has_no_map_to_save(opened, translator):
    seen = opened({"a": translator(decoder="no_attention")})
    seen.type(TEXT)
    seen.page.get_by_text("This model has no attention.").wait_for()
    for name in ("PNG", "CSV"):
        assert seen.page.get_by_role("button", name=name, exact=True).is_disabled()


def test_one_step_has_the_numbers_of_python(opened, translator):
    ours = translator()
    seen = opened({"a": ours})
    seen.type(TEXT)
    seen.page.get_by_role("tab", name="One step").click()
    seen.page.locator(".sheet").wait_for()
    assert seen.page.locator(".sheet .group").count() > 3
    base = analysis.translate(ours, TEXT)
    answer = step_numbers(ours, TEXT, base["ids"])
    assert seen.page.locator(".sheet .lines > *").count() == sum(
        len(group["formulas"]) for group in answer["groups"]
    )


def test_classifier_is_asked_in_the_page(opened):
    ours = build_review_classifier()
    seen = opened({"a": ours})
    seen.type("good bad film")
    answer = ours("good bad film")
    weights = [
        float(weight)
        for weight in seen.page.locator("figure[data-key=own] [data-weight]").evaluate_all(
            "tokens => tokens.map((token) => token.dataset.weight)"
        )
    ]
    np.testing.assert_allclose(weights, answer.attention, atol=1e-5)


def test_embedded_page_shows_what_its_address_says_and_no_title(opened, translator):
    ours = translator()
    address = f"?embed&text={quote(TEXT)}&view=weights&step=2&lang=ko"
    seen = opened({"a": ours}, address)
    seen.wait(TEXT)
    assert seen.page.locator("header").is_hidden()
    assert seen.page.locator("html").get_attribute("lang") == "ko"
    assert seen.page.locator("[role=tab][aria-selected=true]").get_attribute("id") == "tab-weights"
    assert seen.page.locator(".steps [aria-pressed=true]").inner_text() == ours(TEXT).tokens[2]
    places = seen.page.evaluate("history.length")
    seen.page.locator("[role=tab]").nth(0).click()
    seen.settle()
    assert seen.page.evaluate("history.length") == places  # Back leaves the lesson, not the view


@pytest.mark.parametrize("setting", ["fbclid=IwAR0x", "step=last", "changes={", "models"])
def test_setting_of_the_address_that_means_nothing_is_left_out(opened, translator, setting):
    seen = opened({"a": translator()}, f"?{setting}&text={quote(TEXT)}")
    seen.wait(TEXT)
    assert seen.page.get_by_role("alert").count() == 0
    assert seen.page.locator("figure[data-key=own]").count() == 1


def test_step_of_the_address_behind_the_last_one_shows_no_error(opened, translator):
    seen = opened({"a": translator()}, f"?step=99&view=numbers&text={quote(TEXT)}")
    seen.wait(TEXT)
    assert seen.page.get_by_role("alert").count() == 0


def test_link_is_shown_where_the_page_may_not_copy_it(opened, translator):
    seen = opened({"a": translator()}, f"?text={quote(TEXT)}")
    shown = []
    seen.page.on("dialog", lambda dialog: (shown.append(dialog.default_value), dialog.dismiss()))
    seen.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    seen.page.get_by_role("button", name="Copy link").click()
    assert shown == [seen.page.url]


def test_browser_without_import_maps_is_told_what_it_lacks(browser):
    page = browser.new_page()
    page.set_content("<div id='app'></div>")
    page.evaluate(OLD_BROWSER)
    assert page.locator("#app").inner_text() == ""
    page.evaluate("delete HTMLScriptElement.supports")
    page.evaluate(OLD_BROWSER)
    assert "Firefox 121" in page.locator("#app").inner_text()
    page.close()


@pytest.mark.slow
@windows(400, 800, 1280)
def test_no_view_is_wider_than_the_window_or_breaks_a_rule(
    opened, translator, corpus, width, scheme
):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tokenizers = (corpus.source_tokenizer, corpus.target_tokenizer)
    models = {"a": translator(), "b": translator(tokenizers=tokenizers, attention="general")}
    context = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    seen = opened(models, data=corpus.folder, locale="ko-KR", **context)
    seen.type(TEXT)
    tabs = seen.page.get_by_role("tab")
    assert tabs.count() == len(TABS)
    for number in range(len(TABS)):
        tabs.nth(number).click()
        seen.settle()
        assert seen.page.get_by_role("alert").count() == 0
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe.Axe().run(seen.page).response["violations"] == []


def test_embedded_page_tells_the_page_around_it_how_high_it_is(opened, translator, tmp_path):
    seen = opened({"a": translator()})
    (tmp_path / "lesson.html").write_text(
        "<!doctype html><iframe src='page.html?embed' width=600></iframe><script>"
        "addEventListener('message', ({data}) => { document.title = data.attnlabHeight; })"
        "</script>",
        encoding="utf-8",
    )
    seen.page.goto((tmp_path / "lesson.html").as_uri())
    seen.page.wait_for_function("Number(document.title) > 200")
