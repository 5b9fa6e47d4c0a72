"""Typing on the explorer's page: input methods, undo, and the browser's back button."""

from __future__ import annotations

import json

import pytest

TEXT = "May 13, 2026"


@pytest.fixture
def asked_texts():
    """Records the texts that a page asks to translate."""

    def record(seen):
        texts = []

        def listen(request):
            if request.url.endswith("/api/translate"):
                texts.append(json.loads(request.post_data)["text"])

        seen.page.on("request", listen)
        return texts

    return record


def compose(session, *parts):
    """Let an input method show these parts, one in place of the other."""
    for part in parts:
        session.send(
            "Input.imeSetComposition",
            {"text": part, "selectionStart": len(part), "selectionEnd": len(part)},
        )


def test_no_half_composed_syllable_is_asked(visit, translator, asked_texts):
    seen = visit({"a": translator()})
    seen.open("May")
    texts = asked_texts(seen)
    seen.page.locator("textarea").press("End")
    session = seen.page.context.new_cdp_session(seen.page)
    compose(session, "ㄴ", "나", "난")
    seen.page.wait_for_timeout(300)
    assert texts == []
    assert seen.page.locator("textarea").input_value() == "May난"

    # A picture that is drawn meanwhile leaves the composition alone.
    seen.page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    seen.settle()
    compose(session, "난", "나")
    session.send("Input.insertText", {"text": "나"})
    seen.wait("May나")
    assert set(texts) == {"May나"}
    compose(session, "느", "는")
    session.send("Input.insertText", {"text": "는"})
    seen.wait("May나는")
    assert set(texts) == {"May나", "May나는"}


def test_reference_waits_for_the_end_of_a_composition(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Reference").click()
    box = seen.page.get_by_label("Reference translation")
    box.fill("")
    seen.settle()
    asked = []
    seen.page.on("request", lambda request: asked.append(request.post_data))
    box.focus()
    session = seen.page.context.new_cdp_session(seen.page)
    compose(session, "ㅇ", "이", "일")
    seen.page.wait_for_timeout(300)
    assert asked == []
    session.send("Input.insertText", {"text": "일"})
    seen.page.locator("figure[data-key=fed] .heat-labels >> text=일").wait_for()


def test_back_returns_to_the_former_view_and_sentence(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Pads").click()
    seen.page.locator("[role=tab][aria-selected=true]:text-is('Pads')").wait_for()
    seen.settle()
    seen.page.wait_for_timeout(1600)  # a pause after which typing is a new sentence
    seen.type("March 1")
    seen.page.go_back()
    seen.wait(TEXT)
    assert seen.page.locator("textarea").input_value() == TEXT
    assert seen.page.get_by_role("tab", name="Pads").get_attribute("aria-selected") == "true"
    seen.page.go_back()
    seen.page.locator("[role=tab][aria-selected=true]:text-is('Heat map')").wait_for()
    seen.page.go_forward()
    seen.page.locator("[role=tab][aria-selected=true]:text-is('Pads')").wait_for()
    assert seen.page.url.startswith(seen.address)


def test_back_keeps_the_language_of_today(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Pads").click()
    seen.page.locator("[role=tab][aria-selected=true]:text-is('Pads')").wait_for()
    seen.page.get_by_role("button", name="한국어").click()
    seen.page.locator("html[lang=ko]").wait_for(state="attached")
    seen.page.go_back()
    seen.page.locator("[role=tab][aria-selected=true]:text-is('히트맵')").wait_for()


def test_typing_a_sentence_is_one_step_back(visit, translator):
    seen = visit({"a": translator()})
    seen.open("")
    seen.page.locator("textarea").press_sequentially("May 13")
    seen.wait("May 13")
    seen.page.go_back()
    seen.page.locator("textarea:not(:focus), textarea").wait_for()
    seen.page.get_by_text("and its answer appears here").wait_for()
    assert seen.page.locator("textarea").input_value() == ""


def test_every_change_by_hand_is_undone_by_button_and_key(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    undo = seen.page.get_by_role("button", name="Undo")
    seen.page.get_by_role("tab", name="Source tokens").click()
    tokens = seen.page.locator(".tokens button")
    tokens.nth(1).click()
    tokens.nth(2).click()
    seen.page.locator(".tokens .is-hidden").nth(1).wait_for()
    undo.click()
    seen.page.locator(".tokens .is-hidden").nth(1).wait_for(state="detached")
    assert seen.page.locator(".tokens .is-hidden").count() == 1
    seen.page.locator(".tokens button").nth(4).focus()
    seen.page.keyboard.press("Control+z")
    seen.page.locator(".tokens .is-hidden").wait_for(state="detached")

    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.get_by_label("Uniform", exact=True).check()
    seen.settle()
    slider = seen.page.locator(".sliders input").first
    for _ in range(4):
        slider.press("ArrowUp")
    seen.settle()
    assert float(slider.input_value()) > 0.2
    seen.page.keyboard.press("Control+z")  # the four presses are one change
    seen.settle()
    assert seen.page.locator(".steps .changed").count() == 0
    assert seen.page.get_by_label("Uniform", exact=True).is_checked()
    undo.click()
    seen.settle()
    assert not seen.page.get_by_label("Uniform", exact=True).is_checked()


def test_undo_key_in_a_text_box_is_the_browsers_own(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.locator(".likeliest .choice").nth(1).click()
    seen.page.locator("figure[data-key=branch]").wait_for()
    seen.page.locator("input[name=token]").fill("x")
    seen.page.keyboard.press("Control+z")
    seen.settle()
    assert seen.page.locator("figure[data-key=branch]").count() == 1


def test_undone_sentence_comes_back_with_its_weights(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.get_by_role("button", name="Uniform").click()
    seen.page.locator(".steps .changed").wait_for()
    seen.type("May")
    assert seen.page.locator(".steps .changed").count() == 0
    seen.page.get_by_role("button", name="Undo").click()
    seen.wait(TEXT)
    assert seen.page.locator(".steps .changed").count() == 1
    assert seen.page.locator("textarea").input_value() == TEXT


def hidden(seen):
    """The numbers of the source tokens that are hidden."""
    seen.settle()
    classes = "all => all.flatMap((each, i) => each.classList.contains('is-hidden') ? [i] : [])"
    return seen.page.locator(".tokens button").evaluate_all(classes)


@pytest.fixture
def source_tokens(visit, translator):
    """The page's view of source tokens, of which two are hidden one after the other."""
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Source tokens").click()
    for place in (1, 2):
        seen.page.locator(".tokens button").nth(place).click()
    assert hidden(seen) == [1, 2]
    return seen


def test_undone_changes_are_made_again_by_button(source_tokens):
    undo = source_tokens.page.get_by_role("button", name="Undo")
    redo = source_tokens.page.get_by_role("button", name="Redo")
    assert redo.is_disabled()
    undo.click()
    undo.click()
    assert hidden(source_tokens) == []
    redo.click()
    assert hidden(source_tokens) == [1]
    redo.click()
    assert hidden(source_tokens) == [1, 2]
    assert redo.is_disabled()
    undo.click()
    assert hidden(source_tokens) == [1]


@pytest.mark.parametrize(
    "key", ["Control+Shift+z", "Control+y", "Meta+Shift+z", "Control+Shift+ㅋ"]
)
def test_undone_change_is_made_again_by_key(source_tokens, key):
    source_tokens.page.locator(".tokens button").nth(4).focus()
    source_tokens.page.keyboard.press("Control+z")
    assert hidden(source_tokens) == [1]
    *modifiers, letter = key.split("+")
    event = {
        "key": letter,
        "bubbles": True,
        "ctrlKey": "Control" in modifiers,
        "metaKey": "Meta" in modifiers,
        "shiftKey": "Shift" in modifiers,
    }
    source_tokens.page.locator(".tokens button").nth(4).dispatch_event("keydown", event)
    assert hidden(source_tokens) == [1, 2]


def test_new_change_leaves_what_was_undone(source_tokens):
    source_tokens.page.get_by_role("button", name="Undo").click()
    assert hidden(source_tokens) == [1]
    source_tokens.page.locator(".tokens button").nth(5).click()
    assert hidden(source_tokens) == [1, 5]
    assert source_tokens.page.get_by_role("button", name="Redo").is_disabled()
    source_tokens.page.get_by_role("button", name="Undo").click()
    assert hidden(source_tokens) == [1]


def test_redo_returns_to_where_the_change_was_made(source_tokens):
    source_tokens.page.get_by_role("button", name="Undo").click()
    source_tokens.page.get_by_role("tab", name="Pads").click()
    source_tokens.page.locator("[role=tab][aria-selected=true]:text-is('Pads')").wait_for()
    source_tokens.page.get_by_role("button", name="Redo").click()
    source_tokens.page.locator("[role=tab][aria-selected=true]:text-is('Source tokens')").wait_for()
    assert hidden(source_tokens) == [1, 2]
    source_tokens.page.go_back()
    source_tokens.page.locator("[role=tab][aria-selected=true]:text-is('Pads')").wait_for()


def test_what_the_back_button_changed_can_be_undone(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.wait_for_timeout(1600)  # a pause after which typing is a new sentence
    seen.type("May")
    seen.page.go_back()
    seen.wait(TEXT)
    seen.page.get_by_role("button", name="Undo").click()
    seen.wait("May")
    seen.page.get_by_role("button", name="Redo").click()
    seen.wait(TEXT)


def test_cleared_sentence_comes_back_by_the_button(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    seen.page.wait_for_timeout(1600)
    seen.type("")
    seen.page.get_by_role("button", name="Undo").click()
    seen.wait(TEXT)
    assert seen.page.locator("textarea").input_value() == TEXT
