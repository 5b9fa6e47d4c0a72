"""Analyses of a translation model, held against the Python API."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnlab.batch import EOS, UNK
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.analysis import Edit
from attnlab.tasks.translation.beam_tree import beam
from explored_models import BEAM

TEXT = "May 13, 2026"


@pytest.mark.parametrize(
    "intervene", [Intervention(), Intervention("uniform"), Intervention(hide=[0, 3])]
)
@pytest.mark.parametrize(
    "choices", [{}, {"attention": "dot", "decoder": "step_then_attend"}, {"heads": 2}]
)
def test_translate_gives_the_values_of_the_api(character_translator, choices, intervene):
    ours = character_translator(**choices)
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


def test_translate_lists_the_likeliest_tokens_in_order(character_translator):
    ours = character_translator()
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


def test_translate_with_forced_tokens_has_them(character_translator):
    ours = character_translator()
    base = analysis.translate(ours, TEXT)
    other = next(i for _, i, _ in base["likeliest"][1] if i not in (base["ids"][1], EOS))
    branch = analysis.translate(ours, TEXT, Intervention(force={0: base["ids"][0], 1: other}))
    assert branch["ids"][:2] == [base["ids"][0], other]
    np.testing.assert_allclose(branch["attention"][:1], base["attention"][:1], atol=2e-6)


def test_score_of_ids_and_of_text_agree(character_translator):
    ours = character_translator()
    by_text = analysis.score(ours, TEXT, "3월 1일")
    by_ids = analysis.score(ours, TEXT, by_text["ids"])
    assert by_text == by_ids
    np.testing.assert_allclose(
        by_text["log_probs"], ours.score(TEXT, "3월 1일").log_probs, atol=2e-6
    )


def test_edit_is_the_text_with_its_tokens_moved_and_left_out(character_translator):
    ours = character_translator()
    edited = analysis.translate(ours, "Sunday", edit=Edit(swap=[(0, 1)], drop=[5]))
    assert edited == analysis.translate(ours, "uSnda")


def test_masked_pads_change_nothing_and_get_no_weight(character_translator):
    ours = character_translator()
    base = analysis.translate(ours, TEXT)
    padded = analysis.translate(ours, TEXT, edit=Edit(before=2, behind=3))
    assert padded["source"] == ["<pad>"] * 2 + base["source"] + ["<pad>"] * 3
    weights = np.array(padded["attention"])
    np.testing.assert_allclose(weights[:, 2:-3], base["attention"], atol=1e-5)
    assert not weights[:, :2].any()
    assert not weights[:, -3:].any()


def test_unmasked_pads_get_weight(character_translator):
    shown = analysis.score(
        character_translator(), TEXT, "3월", Intervention(mask_pads=False), Edit(before=2, behind=3)
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
def test_wrong_questions_are_refused(character_translator, wrong, message):
    with pytest.raises(ExperimentError, match=message):
        analysis.score(character_translator(), **({"target": ""} | wrong))


@pytest.mark.parametrize(
    "choices", [{"attention": "delta_rule", "normaliser": "none"}, {"normaliser": "none"}]
)
def test_weights_that_may_be_negative_are_given_back_to_the_model(character_translator, choices):
    ours = character_translator(**choices)
    own = ours(TEXT)
    assert own.attention.min() < 0
    again = ours(TEXT, intervene=Intervention(weights=own.attention))
    assert again.text == own.text
    np.testing.assert_allclose(again.attention, own.attention, atol=2e-6)


def test_negative_weights_of_a_model_that_has_none_are_refused(character_translator):
    ours = character_translator()
    row = [-0.5, *[0.1] * (len(ours(TEXT).source_tokens) - 1)]
    with pytest.raises(ExperimentError, match="weights of step 0 must be at least 0, as the"):
        ours(TEXT, intervene=Intervention(weights={0: row}))


def test_posterior_is_not_offered_as_weights_of_another_sentence(character_translator):
    with_weights, with_posterior = (
        analysis.parts_of(character_translator(output=output))["patches"]
        for output in ("linear", "hard_attention")
    )
    assert with_weights == ["weights", "values", "keys", "state"]
    assert with_posterior == ["values", "keys", "state"]


def test_target_whose_end_stands_within_it_is_refused(character_translator):
    with pytest.raises(ExperimentError, match="target: <eos> must stand at its end alone"):
        analysis.score(character_translator(), TEXT, [EOS, EOS])


@pytest.mark.parametrize("choices", [{}, {"output": "first_order_hard_attention"}], ids=repr)
def test_translate_and_beam_copy_source_words_as_the_api_does(character_translator, choices):
    ours = character_translator(**choices)
    unknown = {"force": {0: UNK, 1: UNK}}
    copying = {"replace_unknown": True}
    answer = ours(TEXT, intervene=Intervention(**unknown), **copying)
    shown = analysis.translate(ours, TEXT, Intervention(**unknown), copying)
    assert shown["text"] == answer.text
    assert "<unk>" not in shown["text"]
    tree = beam(ours, TEXT, copying, Intervention(**unknown))
    assert tree["hypotheses"][0]["text"] == answer.text
    assert "<unk>" in analysis.translate(ours, TEXT, Intervention(**unknown))["text"]


def test_translate_copies_the_word_that_an_edit_has_moved(character_translator):
    ours = character_translator(search={**BEAM, "replace_unknown": True})
    at_first = Intervention(force={0: UNK}, weights={0: [1.0] + [0.0] * len(TEXT)})
    assert analysis.translate(ours, TEXT, at_first)["text"].startswith("M")
    swapped = Edit(swap=[(0, 2)], before=2)
    assert analysis.translate(ours, TEXT, at_first, edit=swapped)["text"].startswith("y")
