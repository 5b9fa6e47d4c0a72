"""What the explorer shows, held against the Python API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tiny_folders import FORMS

from attnlab.batch import EOS
from attnlab.data.corpus import Cleaning
from attnlab.errors import ExperimentError
from attnlab.explorer.server import describe, page_of
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.analysis import classify
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.analysis import Edit
from attnlab.tasks.translation.beam_tree import beam
from attnlab.tasks.translation.explorer_page import EXAMPLE
from attnlab.tasks.translation.step_numbers import step_numbers

TEXT = "May 13, 2026"


def described(model: Any, examples: Sequence[str] = ()) -> dict[str, Any]:
    """What the page is told of a model."""
    return describe(model, page_of("model", model), examples)


@pytest.mark.parametrize(
    "intervene", [Intervention(), Intervention("uniform"), Intervention(hide=[0, 3])]
)
@pytest.mark.parametrize(
    "choices", [{}, {"attention": "dot", "decoder": "step_then_attend"}, {"heads": 2}]
)
def test_translate_gives_the_values_of_the_api(translator, choices, intervene):
    ours = translator(**choices)
    shown, answer = analysis.translate(ours, TEXT, intervene), ours(TEXT, intervene=intervene)
    json.dumps(shown, allow_nan=False)
    assert (shown["text"], shown["target"], shown["source"]) == (
        answer.text,
        answer.tokens,
        answer.source_tokens,
    )
    assert shown["score"] == pytest.approx(answer.score)
    np.testing.assert_allclose(shown["attention"], answer.attention, atol=2e-6)
    length_penalty = (5 + len(shown["ids"])) / 6
    assert sum(shown["log_probs"]) / length_penalty == pytest.approx(answer.score, abs=2e-5)


def test_translate_lists_the_likeliest_tokens_in_order(translator):
    ours = translator()
    shown = analysis.translate(ours, TEXT)
    for log_prob, token, likeliest in zip(
        shown["log_probs"], shown["ids"], shown["likeliest"], strict=True
    ):
        probabilities = [probability for _, _, probability in likeliest]
        assert probabilities == sorted(probabilities, reverse=True)
        assert len(likeliest) == 5
        listed = {i: probability for _, i, probability in likeliest}
        if token in listed:
            assert listed[token] == pytest.approx(np.exp(log_prob), abs=2e-6)
    greedy = analysis.translate(ours, TEXT, settings={"search": "greedy"})
    assert greedy["ids"] == [likeliest[0][1] for likeliest in greedy["likeliest"]]


def test_translate_with_forced_tokens_has_them(translator):
    ours = translator()
    base = analysis.translate(ours, TEXT)
    other = next(i for _, i, _ in base["likeliest"][1] if i not in (base["ids"][1], EOS))
    branch = analysis.translate(ours, TEXT, Intervention(force={0: base["ids"][0], 1: other}))
    assert branch["ids"][:2] == [base["ids"][0], other]
    np.testing.assert_allclose(branch["attention"][:1], base["attention"][:1], atol=2e-6)


def test_score_of_ids_and_of_text_agree(translator):
    ours = translator()
    by_text = analysis.score(ours, TEXT, "3월 1일")
    by_ids = analysis.score(ours, TEXT, by_text["ids"])
    assert by_text == by_ids
    np.testing.assert_allclose(
        by_text["log_probs"], ours.score(TEXT, "3월 1일").log_probs, atol=2e-6
    )


def test_edit_is_the_text_with_its_tokens_moved_and_left_out(translator):
    ours = translator()
    edited = analysis.translate(ours, "Sunday", edit=Edit(swap=[(0, 1)], drop=[5]))
    assert edited == analysis.translate(ours, "uSnda")


def test_masked_pads_change_nothing_and_get_no_weight(translator):
    ours = translator()
    base = analysis.translate(ours, TEXT)
    padded = analysis.translate(ours, TEXT, edit=Edit(before=2, behind=3))
    assert padded["source"] == ["<pad>"] * 2 + base["source"] + ["<pad>"] * 3
    weights = np.array(padded["attention"])
    np.testing.assert_allclose(weights[:, 2:-3], base["attention"], atol=1e-5)
    assert not weights[:, :2].any()
    assert not weights[:, -3:].any()


def test_unmasked_pads_get_weight(translator):
    shown = analysis.score(
        translator(), TEXT, "3월", Intervention(mask_pads=False), Edit(before=2, behind=3)
    )
    weights = np.array(shown["attention"])
    assert (weights[:, :2].sum(1) + weights[:, -3:].sum(1) > 0).all()
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": "a", "target": [99]}, "99 is no token"),
        (
            {"text": "a", "target": "1", "intervene": Intervention(hide=[7])},
            "hide must name positions below 2",
        ),
    ],
)
def test_wrong_questions_are_refused(translator, wrong, message):
    with pytest.raises(ExperimentError, match=message):
        analysis.score(translator(), **({"target": ""} | wrong))


def test_model_without_attention_has_no_map_and_refuses_changes_of_it(translator):
    ours = translator(decoder="no_attention")
    assert analysis.translate(ours, TEXT)["attention"] is None
    facts = described(ours)
    assert (facts["kind"], facts["score"], facts["decoder"]) == ("translation", None, "NoAttention")
    with pytest.raises(ExperimentError, match="the model has none"):
        analysis.translate(ours, TEXT, Intervention("uniform"))


def test_describe_names_the_score_and_the_first_example_that_the_vocabulary_covers(
    translator, classifier
):
    ours = translator(attention="dot", projection=4, heads=2)
    facts = described(ours, ["日曜日", "May 1, 2026"])
    assert (facts["score"], facts["normaliser"], facts["context_in_cell"]) == (
        "Dot",
        "Softmax",
        True,
    )
    assert facts["example"] == "May 1, 2026"
    assert described(ours)["example"] == EXAMPLE
    assert described(classifier)["example"] == ""


@pytest.mark.parametrize(
    "intervene", [Intervention(), Intervention("permuted", hide=[1]), Intervention(temperature=9.0)]
)
def test_classify_gives_the_values_of_the_api(classifier, intervene):
    shown, found = (
        classify(classifier, "good film", intervene),
        classifier("good film", intervene=intervene),
    )
    json.dumps(shown, allow_nan=False)
    assert (shown["source"], shown["label"], shown["probabilities"]) == (
        found.tokens,
        found.label,
        found.probabilities,
    )
    np.testing.assert_allclose(shown["attention"], found.attention, atol=1e-6)
    assert described(classifier)["labels"] == ["bad", "good"]


@pytest.mark.parametrize("form", FORMS)
def test_analyses_of_a_text_in_another_form_are_those_of_the_clean_text(
    translator, classifier, form
):
    ours, change = translator(), FORMS[form]
    ours.cleaning = classifier.cleaning = Cleaning(max_source_length=1, max_characters=1)
    text, target, intervene = "May  13, 2026 é", "3월 1일", Intervention(hide=[0, 3])
    clean = "May 13, 2026 é"
    assert analysis.translate(ours, change(text), intervene) == analysis.translate(
        ours, clean, intervene
    )
    assert analysis.score(ours, change(text), change(target)) == analysis.score(ours, clean, target)
    assert classify(classifier, change("good film")) == classify(classifier, "good film")
    assert beam(ours, change(text)) == beam(ours, clean)
    ids = analysis.score(ours, clean, target)["ids"]
    assert step_numbers(ours, change(text), ids) == step_numbers(ours, clean, ids)
    dropped = Edit(drop=[3])  # the space
    assert analysis.translate(ours, change(text), edit=dropped) == analysis.translate(
        ours, "May13, 2026 é"
    )


def test_example_counts_unknown_tokens_of_the_cleaned_text(translator):
    ours = translator()
    spaced = " ".join("\u00a0\u00a0\u00a0".join(word) for word in ["May", "1"])
    assert described(ours, [spaced])["example"] == EXAMPLE
    ours.cleaning = Cleaning()
    assert described(ours, [spaced])["example"] == spaced
