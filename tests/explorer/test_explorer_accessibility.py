"""The explorer's page under axe, with every rule, in every view, colour scheme and width."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from windows import windows

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

TEXT = "May 13, 2026"
VIEWS = (
    "translate",
    "compare",
    "weights",
    "patch",
    "source",
    "beam",
    "numbers",
    "pads",
    "reference",
)


def violations(seen):
    """What axe finds, as lines that a log can show."""
    found = axe.Axe().run(seen.page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for each in found
        for node in each["nodes"]
    ]


def show(seen, **state):
    seen.page.goto("about:blank")
    seen.page.goto(f"{seen.address}#{quote(json.dumps(state))}")
    seen.wait(state["text"])


@pytest.mark.slow
@windows(400, 800, 1280)
def test_no_view_breaks_a_rule(visit, translator, corpus, width, scheme):
    tokenizers = (corpus.source_tokenizer, corpus.target_tokenizer)
    models = {"a": translator(), "b": translator(tokenizers=tokenizers, attention="general")}
    context = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    seen = visit(models, corpus, **context)
    for view in VIEWS:
        show(seen, view=view, text=TEXT)
        assert violations(seen) == [], view
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, view
    show(seen, view="losses", model="b", text=TEXT)
    seen.page.locator(".losses tbody tr").nth(5).wait_for()
    assert violations(seen) == []
    show(seen, view="translate", text=TEXT, lines=True)
    seen.page.locator("details.table summary").click()
    seen.page.locator("details.table table").wait_for()
    assert violations(seen) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_changed_views_and_messages_break_no_rule(visit, translator, classifier, scheme):
    seen = visit({"a": translator(), "c": classifier}, color_scheme=scheme, locale="ko-KR")
    changed = {"weights": {"0": [1] + [0] * 12}, "changes": {"kind": "permuted"}}
    show(seen, view="weights", text=TEXT, **changed)
    assert violations(seen) == []
    show(seen, view="source", text=TEXT, edits={"hide": [1], "drop": [2], "swap": [[0, 3]]})
    assert violations(seen) == []
    patch = {"text": "March 13, 26", "weights": True, "keys": True, "values": True, "steps": "one"}
    show(seen, view="patch", text=TEXT, patch=patch)
    assert seen.page.get_by_role("radio").count() == 4
    assert violations(seen) == []
    pairs = {"here": 1, "places": {"0": 2, "12": 0}}
    show(seen, view="patch", text=TEXT, patch={**patch, "places": "some"}, patchPairs=pairs)
    assert seen.page.locator(".pairs li").count() == 2
    assert violations(seen) == []
    for view in ("translate", "numbers"):
        show(seen, view=view, text=TEXT, branch=[0, "월"])
        assert violations(seen) == []
    show(seen, model="c", text="good film", edits={"hide": [0]})
    assert violations(seen) == []
    show(seen, view="translate", text="")
    assert violations(seen) == []
    seen.page.locator("textarea").fill(TEXT)
    seen.wait(TEXT)
    seen.page.locator("input[name=token]").fill("ん")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_role("alert").wait_for()
    assert violations(seen) == []
    seen.problems.clear()  # the browser reports the refusal


@windows(400, 1280)
def test_no_view_of_a_classifier_breaks_a_rule(visit, classifier, reviews, width, scheme):
    context = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    seen = visit({"c": classifier}, reviews, **context)
    for view in ("classify", "numbers", "losses"):
        show(seen, view=view, text="good film")
        if view == "losses":
            seen.page.locator(".losses tbody tr").nth(5).wait_for()
        assert violations(seen) == [], view
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_page_has_one_main_landmark_with_the_tabs_and_their_panel(visit, translator):
    seen = visit({"a": translator()})
    seen.open(TEXT)
    assert seen.page.get_by_role("main").count() == 1
    assert seen.page.get_by_role("banner").count() == 1
    panel = seen.page.get_by_role("main").get_by_role("tabpanel", name="Heat map")
    assert panel.count() == 1
    tab = seen.page.get_by_role("tab", name="Heat map")
    assert tab.get_attribute("aria-controls") == panel.get_attribute("id")
