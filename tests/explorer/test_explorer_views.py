"""Beam, steps, pads, references and classified sentences on the explorer's page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnlab.evaluation.edit_alignment import places_in_reference, wrong_tokens
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.analysis import classify
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.analysis import Edit
from attnlab.tasks.translation.beam_tree import beam
from attnlab.tasks.translation.explorer_page import first_pairs

TEXT = "May 13, 2026"


@pytest.fixture
def seen_in(visit):
    def open_view(model, name, text=TEXT):
        seen = visit({"a": model})
        seen.open(text)
        seen.page.get_by_role("tab", name=name).click()
        seen.page.locator(f"[role=tab][aria-selected=true]:text-is('{name}')").wait_for()
        seen.settle()
        return seen

    return open_view


def numbers_of(rows):
    return [
        [float(text) for text in row.locator("td").all_inner_texts()[1:3]] for row in rows.all()
    ]


def test_beam_shows_every_candidate_and_the_effect_of_the_length_penalty(seen_in, translator):
    ours = translator()
    seen, tree = seen_in(ours, "Beam"), beam(ours, TEXT)
    for status in ("kept", "pruned", "finished", "cut_off"):
        expected = sum(node["status"] == status for node in tree["nodes"])
        assert seen.page.locator(f".tree g.{status}").count() == expected
    rows = seen.page.locator(".hypotheses tbody tr")
    expected = [[each["score"], each["log_prob"]] for each in tree["hypotheses"]]
    np.testing.assert_allclose(numbers_of(rows), expected, atol=6e-5)
    seen.page.locator("input[type=range]").fill("2.5")
    seen.page.get_by_text("Length penalty 2.50").wait_for()
    seen.settle()
    again = beam(ours, TEXT, {"length_penalty": 2.5})
    expected = [[each["score"], each["log_prob"]] for each in again["hypotheses"]]
    np.testing.assert_allclose(numbers_of(rows), expected, atol=6e-5)
    seen.page.locator("input[type=number]").fill("5")
    seen.page.locator("input[type=number]").press("Enter")
    seen.page.locator("input[type=number][value='5']").wait_for()
    seen.settle()
    wider = beam(ours, TEXT, {"size": 5})
    assert seen.page.locator(".tree g").count() == len(wider["nodes"])


@pytest.mark.parametrize("is_masked", [True, False])
def test_choices_of_a_mask_begin_as_the_model_was_trained(seen_in, translator, is_masked):
    ours = translator()
    ours.model.padding = replace(ours.model.padding, attention_masked=is_masked)
    seen = seen_in(ours, "One step")
    seen.page.get_by_label("Pads behind").fill("2")
    seen.page.locator('[data-cell="α"]').nth(
        len(analysis.translate(ours, TEXT)["source"]) + 1
    ).wait_for()
    names = {True: "−∞ before the softmax", False: "no mask"}
    assert seen.page.get_by_label(names[is_masked]).is_checked()

    def on_pads():
        seen.settle()
        shares = seen.page.locator('[data-cell="α"]').all_inner_texts()[-2:]
        return sum(float(share) for share in shares)

    assert (on_pads() == 0) == is_masked
    seen.page.get_by_label(names[not is_masked]).check()
    assert (on_pads() == 0) == (not is_masked)


def test_masked_half_is_masked_for_a_model_trained_without_a_mask(seen_in, translator):
    ours = translator()
    ours.model.padding = replace(ours.model.padding, attention_masked=False)
    seen = seen_in(ours, "Pads")
    assert not np.array(seen.table("masked"))[:, -4:].any()
    assert np.array(seen.table("unmasked"))[:, -4:].all()


def test_pads_get_weight_only_without_their_mask(seen_in, translator):
    ours = translator()
    seen = seen_in(ours, "Pads")
    seen.page.get_by_label("Pads before").fill("2")
    seen.page.locator("input[value='2']").wait_for()
    seen.settle()
    edit = Edit(before=2, behind=4)
    for name, intervene in {
        "masked": Intervention(),
        "unmasked": Intervention(mask_pads=False),
    }.items():
        weights = np.array(analysis.translate(ours, TEXT, intervene, edit=edit)["attention"])
        np.testing.assert_allclose(seen.table(name), weights, atol=1e-5)
        share = 100 * (weights[:, :2].sum(1) + weights[:, -4:].sum(1)).mean()
        half = seen.page.locator(
            ".half", has=seen.page.get_by_role("heading", name=name.title(), exact=True)
        )
        assert f"{share:.2f} % of the weight" in half.inner_text()


def test_reference_is_fed_beside_the_free_running_translation(seen_in, translator):
    ours = translator()
    seen = seen_in(ours, "Reference")
    seen.page.get_by_label("Reference translation").fill("3월 1일")
    scored = ours.score(TEXT, "3월 1일")
    seen.page.get_by_text(f"Reference fed: log-probability {scored.total:.4f}").wait_for()
    np.testing.assert_allclose(seen.table("fed"), scored.attention, atol=1e-5)
    np.testing.assert_allclose(seen.table("free"), ours(TEXT).attention, atol=1e-5)
    rows = seen.page.locator(".effects tbody tr").all()
    log_probs = [float(row.locator("td").nth(1).inner_text()) for row in rows]
    np.testing.assert_allclose(log_probs, scored.log_probs, atol=6e-5)


def test_pair_of_the_corpus_brings_its_reference_and_its_alignment(visit, translator, corpus):
    tokenizers = corpus.source_tokenizer, corpus.target_tokenizer
    ours = translator(tokenizers=tokenizers)
    pair = first_pairs(ours, corpus)[2]
    seen = visit(
        {"a": ours, "none": translator(tokenizers=tokenizers, decoder="no_attention")}, corpus
    )
    seen.open("1 2")
    seen.page.get_by_role("tab", name="Reference").click()
    seen.page.get_by_label("Test pairs of the corpus").select_option(index=3)
    seen.wait(pair["source"])
    assert seen.page.get_by_label("Reference translation").input_value() == pair["target"]
    fed = seen.page.locator("figure[data-key=fed]")
    shape = [len(pair["target"].split()) + 1, len(pair["source"].split()) + 1]
    outlined = fed.locator(".heat-link.sure").evaluate_all(
        "(links, shape) => links.map(link => ['y', 'x'].map((side, i) => "
        "Math.round(parseFloat(link.getAttribute(side)) * shape[i] / 100)))",
        shape,
    )
    own = [*ours(pair["source"]).tokens]
    target = [*pair["target"].split(), "<eos>"]
    places = places_in_reference(own, target)
    free = seen.page.locator("figure[data-key=free]")
    shared = sum(place in places for place, _ in pair["sure"])
    assert free.locator(".heat-link.sure").count() == shared
    wrong = free.locator(".heat-labels > *").evaluate_all(
        "labels => labels.flatMap((label, i) => label.classList.contains('wrong') ? [i] : [])"
    )
    assert wrong == wrong_tokens(own, target) != []
    assert (
        sorted(outlined)
        == sorted(pair["sure"])
        == sorted(corpus.split("test").links("sure", 2).tolist())
    )
    weights = ours.score(pair["source"], pair["target"]).attention
    seen.page.locator("header select").select_option("none")
    seen.page.locator("figure[data-key=fed]", has_text="This model has no attention.").wait_for()
    seen.page.locator("header select").select_option("a")
    right = sum(weights[row].argmax() == column for row, column in pair["sure"])
    assert (
        f" {right} of {len(pair['sure'])} aligned tokens"
        in seen.page.locator(".agreement").inner_text()
    )
    # Other tokens, no links
    assert first_pairs(translator(), corpus)[2] == pair | {"sure": [], "possible": []}


def test_classified_sentence_is_coloured_and_takes_interventions(visit, classifier):
    seen = visit({"a": classifier})
    seen.open("good <b> film")
    weights = "tokens => tokens.map(token => Number(token.dataset.weight))"
    own = classifier("good <b> film")
    first, second = (
        seen.page.locator(f"figure[data-key={key}] .tokens > *") for key in ("own", "changed")
    )
    np.testing.assert_allclose(first.evaluate_all(weights), own.attention, atol=1e-5)
    assert seen.page.locator(".tokens b").count() == 0
    second.nth(2).click()
    seen.page.locator(".coloured .is-hidden").wait_for()
    hidden = classifier("good <b> film", intervene=Intervention(hide=[2]))
    np.testing.assert_allclose(second.evaluate_all(weights), hidden.attention, atol=1e-5)
    seen.page.get_by_label("Permuted").check()
    seen.page.get_by_role("button", name="Permute again").click()
    seen.page.get_by_role("button", name="Reset").wait_for()
    seen.settle()
    changed = classifier("good <b> film", intervene=Intervention("permuted", hide=[2], seed=1))
    np.testing.assert_allclose(second.evaluate_all(weights), changed.attention, atol=1e-5)
    shown = {
        row.locator("th").inner_text(): float(row.locator("td").nth(1).inner_text())
        for row in seen.page.locator(".classes tbody tr").all()
    }
    assert shown == pytest.approx(changed.probabilities, abs=1e-5)
    seen.page.get_by_label("Uniform").check()
    seen.settle()
    uniform = classifier("good <b> film", intervene=Intervention("uniform", hide=[2], seed=1))
    np.testing.assert_allclose(second.evaluate_all(weights), uniform.attention, atol=1e-5)
    bars = [bar.bounding_box() for bar in seen.page.locator(".classes .bar i").all()]
    assert [bar["width"] / 128 for bar in bars] == pytest.approx(
        list(uniform.probabilities.values()), abs=0.02
    )
    assert min(bar["height"] for bar in bars) > 4

    seen.page.get_by_label("Pads before").fill("2")
    seen.page.get_by_label("Mask the pads").uncheck()
    seen.settle()
    unmasked = Intervention("uniform", hide=[2], mask_pads=False)
    shown = classify(classifier, "good <b> film", unmasked, Edit(before=2))
    np.testing.assert_allclose(second.evaluate_all(weights), shown["attention"], atol=1e-5)
    seen.page.get_by_role("button", name="Reset").click()
    seen.page.locator(".sliders input").nth(1).fill("1")
    seen.settle()
    by_hand = classifier(
        "good <b> film", intervene=Intervention(weights={0: np.eye(len(own.tokens))[1].tolist()})
    )
    np.testing.assert_allclose(second.evaluate_all(weights), by_hand.attention, atol=1e-5)
    assert (
        f"{by_hand.probabilities['good']:.5f}" in seen.page.locator(".classes tbody").inner_text()
    )
    second.nth(1).click()
    seen.settle()
    hidden = classifier("good <b> film", intervene=Intervention(hide=[1]))  # no longer by hand
    np.testing.assert_allclose(second.evaluate_all(weights), hidden.attention, atol=1e-5)
