"""Changing weights and source tokens on the explorer's page."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.data.trainers import WordTrainer
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.analysis import Edit

TEXT = "May 13, 2026"
SHOWN = 6e-5  # the table of effects has four digits


def test_weights_made_uniform_show_their_effect_on_every_token(visit, translator):
    ours = translator()
    seen, base = visit({"a": ours}), analysis.translate(ours, TEXT)
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.locator(".steps button").nth(1).click()
    seen.page.get_by_role("button", name="Uniform").click()
    seen.page.locator(".steps button.changed").wait_for()
    uniform = [1 / len(base["source"])] * len(base["source"])
    after = analysis.score(ours, TEXT, base["ids"], Intervention(weights={1: uniform}))
    expected = np.stack([base["log_probs"], after["log_probs"]], 1)
    np.testing.assert_allclose(seen.effects(), expected, atol=SHOWN)
    free = ours(TEXT, intervene=Intervention(weights={1: uniform}))
    assert seen.page.locator(".answer > bdi, .answer mark").count() == len(free.tokens)
    seen.page.get_by_role("button", name="Reset").click()
    seen.page.locator(".steps button.changed").wait_for(state="detached")
    np.testing.assert_allclose(seen.effects(), np.stack([base["log_probs"]] * 2, 1), atol=SHOWN)

    seen.page.get_by_label("Permuted").check()
    seen.page.get_by_role("button", name="Permute again").click()
    seen.page.get_by_label("Temperature").fill("0.5")
    seen.page.get_by_text("Temperature 3.16").wait_for()
    after = analysis.score(
        ours, TEXT, base["ids"], Intervention("permuted", seed=1, temperature=10**0.5)
    )
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=SHOWN)


def test_change_goes_for_the_heads_that_are_ticked(visit, translator):
    ours, plain = translator(heads=2), translator()
    seen, base = visit({"a": ours, "b": plain}), analysis.translate(ours, TEXT)
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.get_by_label("Head 0").uncheck()
    assert seen.page.get_by_label("Head 1").is_disabled()
    seen.page.get_by_label("Permuted").check()
    seen.settle()
    after = analysis.score(ours, TEXT, base["ids"], Intervention("permuted", heads=[1]))
    of_both = analysis.score(ours, TEXT, base["ids"], Intervention("permuted"))
    assert not np.allclose(after["log_probs"], of_both["log_probs"], atol=2 * SHOWN)
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=SHOWN)
    seen.page.get_by_label("Head 0").check()
    seen.settle()
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], of_both["log_probs"], atol=SHOWN)

    # A model of one head has no choice, and what was chosen is forgotten with its model.
    seen.page.get_by_label("Head 1").uncheck()
    seen.page.locator("header select").select_option("b")
    seen.page.locator(".heads").wait_for(state="detached")
    seen.settle()
    assert seen.page.get_by_role("alert").count() == 0


def test_weight_is_dragged_and_moved_by_keys_and_the_row_sums_to_one(visit, translator):
    ours = translator()
    seen, base = visit({"a": ours}), analysis.translate(ours, TEXT)
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Weights").click()
    slider = seen.page.locator(".sliders input").nth(2)
    box = slider.bounding_box()
    seen.page.mouse.move(box["x"] + 10, box["y"] + box["height"] - 3)
    seen.page.mouse.down()
    for part in (0.7, 0.5, 0.25):
        seen.page.mouse.move(box["x"] + 10, box["y"] + part * box["height"])
    seen.page.mouse.up()
    seen.settle()
    slider.press("ArrowUp")
    seen.settle()
    weights = seen.page.locator(".sliders input").evaluate_all(
        "inputs => inputs.map(input => Number(input.value))"
    )
    assert 0.6 < weights[2] <= 1
    assert sum(weights) == pytest.approx(1, abs=1e-4)
    after = analysis.score(ours, TEXT, base["ids"], Intervention(weights={0: weights}))
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=SHOWN)


def test_source_tokens_are_hidden_dropped_and_swapped(visit, translator):
    ours = translator()
    seen, base = visit({"a": ours}), analysis.translate(ours, TEXT)
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Source tokens").click()
    tokens = seen.page.locator(".tokens button")
    tokens.nth(4).click()
    tokens.nth(5).click()
    seen.page.locator(".tokens .is-hidden").nth(1).wait_for()
    after = analysis.score(ours, TEXT, base["ids"], Intervention(hide=[4, 5]))
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=SHOWN)

    # The positions of the hidden tokens move with a dropped one before them.
    seen.page.get_by_label("Drop").check()
    tokens.nth(1).click()
    seen.page.locator(".tokens .is-dropped").wait_for()
    after = analysis.score(ours, TEXT, base["ids"], Intervention(hide=[3, 4]), Edit(drop=[1]))
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=SHOWN)
    np.testing.assert_allclose(seen.table("edited"), after["attention"], atol=1e-5)

    seen.page.get_by_role("button", name="Reset").click()
    seen.page.get_by_label("Swap").check()
    tokens.nth(0).click()
    tokens.nth(7).click()
    seen.page.locator(".tokens .changed").nth(1).wait_for()
    seen.page.get_by_label("Uniform").check()
    seen.page.locator("input[type=range]:disabled").wait_for()
    after = analysis.score(ours, TEXT, base["ids"], Intervention("uniform"), Edit(swap=[(0, 7)]))
    np.testing.assert_allclose(np.array(seen.effects())[:, 1], after["log_probs"], atol=SHOWN)


def test_unchanged_tokens_are_folded_and_counted(visit, translator):
    ours = translator()
    seen, base = visit({"a": ours}), analysis.translate(ours, TEXT)
    tokens = len(base["target"])
    seen.open(TEXT)
    seen.page.get_by_role("tab", name="Source tokens").click()
    fold = seen.page.locator(".fold")
    fold.wait_for()
    words = "token" if tokens == 1 else "tokens"
    assert fold.inner_text().startswith(f"{tokens} {words} unchanged")
    rows = seen.page.locator(".effects tbody tr:not(.fold)")
    assert rows.count() == 0

    fold.get_by_role("button", name="show").click()
    rows.nth(tokens - 1).wait_for()
    assert rows.count() == tokens
    fold.get_by_role("button", name="hide").click()
    rows.first.wait_for(state="detached")

    # In the view of weights the chosen token always stands there.
    seen.page.get_by_role("tab", name="Weights").click()
    seen.page.locator(".steps button").nth(1).click()
    seen.page.locator(".effects .selected").wait_for()
    assert rows.count() == 1

    seen.page.get_by_role("button", name="Uniform at this step").click()
    seen.page.locator(".steps .changed").wait_for()
    seen.settle()
    uniform = [round(1 / len(base["source"]), 6)] * len(base["source"])
    after = analysis.score(ours, TEXT, base["ids"], Intervention(weights={1: uniform}))
    change = np.abs(np.array(after["log_probs"]) - base["log_probs"])
    assert rows.count() == np.sum((change >= 5e-5) | (np.arange(tokens) == 1))


def test_bars_and_nodes_have_their_whole_token(visit, translator):
    tokens = ["Wednesday", "understanding", "a"]
    sources = WordTrainer(min_frequency=1).train([" ".join(tokens)])
    targets = WordTrainer(min_frequency=1).train(["incomprehensibilities sure"])
    seen = visit({"a": translator(tokenizers=(sources, targets))})
    seen.open(" ".join(tokens))
    seen.page.get_by_role("tab", name="Weights").click()
    labels = seen.page.locator(".sliders bdi")
    labels.first.wait_for()
    assert labels.all_inner_texts() == [*tokens, "<eos>"]
    fits = "all => all.map(each => each.scrollWidth <= each.clientWidth + 1)"
    assert all(labels.evaluate_all(fits))

    seen.page.get_by_role("tab", name="Beam").click()
    node = seen.page.locator(".tree g").filter(has_text="incomprehensib").first
    node.wait_for()
    assert "incomprehensibilities" in node.locator("title").text_content()
    assert "incomprehensibilities" in node.get_attribute("aria-label")
    seen.page.locator(".tree g").first.focus()
    seen.page.keyboard.press("ArrowRight")
    words = seen.page.locator("figure[data-key=tree] output").inner_text()
    assert words == seen.page.locator(".tree g").nth(1).get_attribute("aria-label")
