"""What the page is told of a model, and analyses of texts in other forms than its training data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tiny_folders import FORMS

from attnlab.data.corpus import Cleaning
from attnlab.errors import ExperimentError
from attnlab.explorer.served_models import describe, page_of
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.analysis import classify
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.analysis import Edit
from attnlab.tasks.translation.beam_tree import beam
from attnlab.tasks.translation.step_numbers import step_numbers

TEXT = "May 13, 2026"


def described(model: Any, examples: Sequence[str] = ()) -> dict[str, Any]:
    """What the page is told of a model."""
    return describe(model, page_of("model", model), examples)


def test_model_without_attention_has_no_map_and_refuses_changes_of_it(translator):
    ours = translator(decoder="no_attention")
    assert analysis.translate(ours, TEXT)["attention"] is None
    facts = described(ours)
    assert (facts["kind"], facts["score"]) == ("translation", None)
    with pytest.raises(ExperimentError, match="the model has none"):
        analysis.translate(ours, TEXT, Intervention("uniform"))


def test_describe_names_the_score_and_the_first_example_that_the_vocabulary_covers(
    translator, classifier
):
    ours = translator(attention="dot", projection=4, heads=2)
    facts = described(ours, ["日曜日", "May 1, 2026"])
    assert facts["score"] == "Dot"
    assert facts["example"] == "May 1, 2026"
    assert described(ours)["example"] == ""
    ours.example = "May 2, 2026"
    assert described(ours)["example"] == "May 2, 2026"
    assert described(ours, ["May 1, 2026"])["example"] == "May 1, 2026"
    assert described(classifier)["example"] == ""
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
    assert described(ours, [spaced])["example"] == ""
    ours.cleaning = Cleaning()
    assert described(ours, [spaced])["example"] == spaced
