"""Patches on the explorer's page: parts of the model's run on another sentence."""

from __future__ import annotations

import re

import numpy as np
import pytest

from attnlab.config.part import Part
from attnlab.explorer.export import page_with
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.patch import Patch
from attnlab.tasks.translation import analysis

TEXT = "May 13, 2026"
OTHER = "March 1, 202"  # as long
SHORT = "Sunday"
POSITIONS = Part(LocationScore, max_length=20)
SHOWN = 6e-5  # the table of effects has four digits


@pytest.fixture
def patched(visit, visit_file, tmp_path):
    """Opens the view of patches, of the server's page or of an exported one."""

    def open_view(models, is_exported=False, corpus=None, other=OTHER):
        if is_exported:
            (tmp_path / "page.html").write_text(page_with(models), encoding="utf-8")
            seen = visit_file(tmp_path / "page.html")
            seen.type(TEXT)
        else:
            seen = visit(models, corpus)
            seen.open(TEXT)
        seen.page.get_by_role("tab", name="Patch").click()
        other_box(seen).fill(other)
        seen.page.get_by_text("Its translation:").wait_for()
        seen.settle()
        return seen

    return open_view


def other_box(seen):
    return seen.page.get_by_role("textbox", name="Another sentence")


def check(seen, *parts):
    for part in parts:
        seen.page.locator(".patch label").filter(has_text=re.compile(f"^ *{part}")).check()
        seen.settle()


def assert_shows(seen, ours, intervene):
    """Translation, table and map are those of Python under the intervention."""
    base = analysis.translate(ours, TEXT)
    after = analysis.score(ours, TEXT, base["ids"], intervene)
    assert after["log_probs"] != pytest.approx(base["log_probs"], abs=10 * SHOWN)
    expected = np.stack([base["log_probs"], after["log_probs"]], 1)
    np.testing.assert_allclose(seen.effects(), expected, atol=SHOWN)
    free = ours(TEXT, intervene=intervene)
    assert seen.page.locator(".answer > bdi, .answer mark").count() == len(free.tokens)
    np.testing.assert_allclose(seen.table("patched"), after["attention"], atol=1.5e-5)


@pytest.mark.parametrize("is_exported", [False, True])
def test_each_part_of_a_sentence_of_the_same_length_is_taken(patched, translator, is_exported):
    ours = translator()
    seen = patched({"a": ours}, is_exported)
    base = analysis.translate(ours, TEXT)
    np.testing.assert_allclose(seen.effects(), np.stack([base["log_probs"]] * 2, 1), atol=SHOWN)

    for part in ("keys", "values"):
        check(seen, f"{part}, which")
        assert_shows(seen, ours, Intervention(patch=Patch(OTHER, **{part: "all"})))
        seen.page.get_by_role("button", name="Reset").click()
        seen.settle()
    check(seen, "the decoder's first state")
    assert_shows(seen, ours, Intervention(patch=Patch(OTHER, state=True)))
    check(seen, "keys, which", "values, which")
    whole = Patch(OTHER, keys="all", values="all", state=True)
    assert_shows(seen, ours, Intervention(patch=whole))
    seen.page.get_by_role("button", name="Undo").click()
    seen.settle()
    assert_shows(seen, ours, Intervention(patch=Patch(OTHER, keys="all", state=True)))


@pytest.mark.parametrize("is_exported", [False, True])
def test_weights_are_taken_at_all_steps_or_one_and_for_some_heads(patched, translator, is_exported):
    ours = translator(heads=2)
    seen = patched({"a": ours}, is_exported)
    weights = analysis.translate(ours, OTHER)["attention"]
    check(seen, "weights")
    assert_shows(seen, ours, Intervention(weights=weights))
    seen.page.get_by_label("one step").check()
    seen.page.locator(".panel .steps button").nth(1).click()
    seen.settle()
    assert_shows(seen, ours, Intervention(weights={1: weights[1]}))
    seen.page.get_by_label("Head 0").uncheck()
    seen.settle()
    assert_shows(seen, ours, Intervention(weights={1: weights[1]}, heads=[1]))


@pytest.mark.parametrize("is_exported", [False, True])
def test_sentence_of_another_length_gives_chosen_tokens_and_the_state(
    patched, translator, is_exported
):
    ours = translator()
    seen = patched({"a": ours}, is_exported, other=SHORT)
    lengths = f"The source has {len(TEXT) + 1} tokens and the other sentence {len(SHORT) + 1}:"
    assert seen.page.get_by_text(lengths).count() == 1
    assert seen.page.get_by_role("checkbox", name="weights", exact=True).is_disabled()
    check(seen, "keys, which", "values, which")
    assert seen.page.get_by_label("all tokens").is_disabled()

    here = seen.page.get_by_role("group", name="Source").get_by_role("button")
    there = seen.page.get_by_role("group", name="Another sentence").get_by_role("button")
    assert there.first.is_disabled()
    for place, other in ((0, 2), (4, 0)):
        here.nth(place).click()
        seen.settle()
        there.nth(other).click()
        seen.settle()
    pairs = {0: 2, 4: 0}
    assert_shows(seen, ours, Intervention(patch=Patch(SHORT, keys=pairs, values=pairs)))
    seen.page.locator(".pairs button").first.click()
    seen.settle()
    check(seen, "the decoder's first state")
    left = Patch(SHORT, keys={4: 0}, values={4: 0}, state=True)
    assert_shows(seen, ours, Intervention(patch=left))

    # The pairs belong to both sentences.
    other_box(seen).fill("Monday")
    seen.settle()
    assert seen.page.locator(".pairs").count() == 0


def test_part_that_a_model_lacks_is_not_offered_and_the_page_says_why(patched, translator):
    models = {
        "location": translator(attention=POSITIONS),
        "zero": translator(bridge="zero"),
        "none": translator(decoder="no_attention"),
    }
    seen = patched(models)
    lacking = {
        "location": (["keys, which"], "The score of this model goes by positions"),
        "zero": (["the decoder's first"], "The decoder of this model starts with no state"),
        "none": (["weights", "keys, which", "values, which"], "This model has no attention"),
    }
    for name, (parts, reason) in lacking.items():
        seen.page.locator("header select").select_option(name)
        seen.page.get_by_text(reason).wait_for()
        seen.settle()
        disabled = seen.page.locator(".patch input[type=checkbox]:disabled").all()
        labels = [each.locator("..").inner_text().strip() for each in disabled]
        assert len(labels) == len(parts)
        for label, part in zip(labels, parts, strict=True):
            assert label.startswith(part)
    check(seen, "the decoder's first state")
    base = analysis.translate(models["none"], TEXT)
    state = Intervention(patch=Patch(OTHER, state=True))
    after = analysis.score(models["none"], TEXT, base["ids"], state)
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=SHOWN)


def test_other_sentence_is_chosen_among_the_test_sentences_of_the_corpus(
    patched, translator, corpus
):
    tokenizers = (corpus.source_tokenizer, corpus.target_tokenizer)
    ours = translator(tokenizers=tokenizers)
    seen = patched({"a": ours}, corpus=corpus)
    chosen = seen.page.get_by_label("Test pairs of the corpus")
    source = chosen.locator("option").nth(2).inner_text()
    chosen.focus()  # as a person does, who then no longer types
    chosen.select_option(source)
    seen.page.get_by_text(ours(source).text).first.wait_for()
    assert other_box(seen).input_value() == source


def test_other_sentence_that_the_model_refuses_leaves_its_box(patched, translator):
    seen = patched({"a": translator(attention=POSITIONS)})
    other_box(seen).fill("May " * 40)
    seen.page.get_by_role("alert").wait_for()
    other_box(seen).fill(OTHER)
    seen.page.get_by_role("alert").wait_for(state="detached")
    seen.problems.clear()  # the browser reports the refusal


def test_saved_page_shows_the_patch_without_the_model(patched, translator, visit_file, tmp_path):
    ours = translator()
    seen = patched({"a": ours})
    check(seen, "values, which")
    with seen.page.expect_download() as download:
        seen.page.get_by_role("button", name="Save page").click()
    download.value.save_as(tmp_path / "saved.html")
    saved = visit_file(tmp_path / "saved.html")
    saved.page.get_by_role("tab", name="Patch").click()
    saved.settle()
    assert_shows(saved, ours, Intervention(patch=Patch(OTHER, values="all")))
    assert saved.page.locator(".patch input:not([disabled], [readonly])").count() == 0
