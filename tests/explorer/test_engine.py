"""The engine of exported pages answers as Python does: same tokens, weights within 1e-5."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from composed_variants import COPIES, MARGINALISES
from covering_array import covering_array
from engine_in_node import (
    TOLERANCE,
    answers_of_python,
    assert_engine_answers_as_python,
    assert_same,
    engine_in_node,
)
from legal_choices import arguments

from attnlab.batch import Padding
from attnlab.config.part import Part
from attnlab.data.corpus import Cleaning
from attnlab.data.trainers import BpeTrainer, CharacterTrainer, WordTrainer
from attnlab.model.attention.attention import MultiHeadAttention
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.cosine import CosineScore
from attnlab.model.attention.dot import DotScore
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.mechanism import LinearProjection
from attnlab.model.normalisers.sparsemax import Sparsemax
from attnlab.model.scopes import LocalP
from attnlab.tasks.translation.translator import Translator
from explored_models import build_character_translator, build_review_classifier

# Choices that the engine does not have, and what stands in their place.
REPLACED = {
    "output": dict.fromkeys((*COPIES, *MARGINALISES), "linear"),
    "gate": dict.fromkeys(("elementwise", "per_head"), "none"),
    "attention": dict.fromkeys(("linear_attention", "delta_rule"), "general"),
    "normaliser": {"none": "softmax"},
}


def exportable(row):
    return row | {factor: names.get(row[factor], row[factor]) for factor, names in REPLACED.items()}


# Every pair of choices that the engine has.
ROWS = [exportable(row) for row in covering_array()[0]]
TEXTS = ("a b c d", "g", "f e e d a b c")
OTHER = "e q a"  # whose run a patch takes from
SOURCE = WordTrainer(split="whitespace", min_frequency=1).train(["a b c d e f g"])
TARGET = WordTrainer(split="whitespace", min_frequency=1).train(["v w x y z"])
SIZES = {"source_vocabulary_size": SOURCE.size, "target_vocabulary_size": TARGET.size}
GREEDY = {"_target_": "attnlab.search.greedy.GreedySearch", "max_length": 6}
PENALTIES = {"size": 4, "length_penalty": 0.7, "coverage_penalty": 0.3, "min_length": 2}


@pytest.fixture(scope="module")
def engine():
    with engine_in_node() as started:
        yield started


def translator_of(row, tiny_model):
    """The model of a row of choices, with words of one letter."""
    # With this seed no two candidates of a beam are as likely as each other in single precision:
    # which of those comes first is left to rounding, here and there.
    model = tiny_model(**arguments(row), scale=2.0, dtype=torch.float32, seed=2)
    trainer = WordTrainer(split="whitespace", min_frequency=1)
    source = trainer.train(["a b c d e f g"])
    target = source if row["joint_vocabulary"] else trainer.train(["v w x y z"])
    return Translator(model, source, target, GREEDY)


def questions_about(row, text):
    """Every kind of question about one text; changes of the attention where there is one."""
    length = len(text.split()) + 1
    token = "d" if row["joint_vocabulary"] else "x"
    same = {"text": text}
    # Python reads pads on the side where the model's batches have them.
    pads = {"before": 2} if row["padding"].encoder == "pre" else {"behind": 2}
    questions = [
        ("translate", same),
        ("translate", {**same, "settings": {"beam": 3}}),
        ("translate", {**same, "intervene": {"force": {"1": token}}}),
        ("translate", {**same, "edit": {"swap": [[0, length - 2]], "drop": [0], **pads}}),
        ("score", {**same, "target": f"{token} {token} q"}),
        ("beam", {**same, "settings": {"size": 3}}),
    ]
    if row.get("bridge") != "zero":
        state = {"patch": {"text": OTHER, "state": True}}
        questions.append(("translate", {**same, "intervene": state, "edit": pads}))
    # The numbers of a step are many: those of one text are enough.
    step = {**same, "target": [4, 5, 3], "step": 2, "edit": pads}
    if text == TEXTS[0]:
        questions.append(("step_numbers", step))
    if row["attention"] is None:
        return questions

    by_hand = np.linspace(0, 1, length).round(3).tolist()
    changes = [
        {"kind": "uniform"},
        {"kind": "permuted", "seed": 3},
        {"temperature": 0.3},
        {"temperature": 4.0, "hide": [0]},
        {"hide": "all"},
        {"weights": {"1": by_hand}},
        {"mask_pads": False},
        {"mask_pads": True},
        {"patch": {"text": OTHER, "values": {0: 2, 1: 0}}},
    ]
    questions += [
        ("score", {**same, "target": [4, 5, 3], "intervene": change, "edit": pads})
        for change in changes
    ]
    if text == TEXTS[0]:
        questions.append(("step_numbers", {**step, "intervene": {"temperature": 2.0}}))
        questions.append(("step_numbers", {**step, "masking": "after", "recurrence": "read"}))
    penalties = {"settings": PENALTIES}
    return [*questions, ("translate", {**same, **penalties}), ("beam", {**same, **penalties})]


# CI takes each third row, and `make test-all` every pair of choices.
ROW_NUMBERS = [
    pytest.param(number, marks=() if number % 3 == 0 else (pytest.mark.long,))
    for number in range(len(ROWS))
]


@pytest.mark.parametrize("number", ROW_NUMBERS)
def test_model_of_each_row_of_choices_is_answered_as_by_python(number, tiny_model, engine):
    row = ROWS[number]
    questions = [question for text in TEXTS for question in questions_about(row, text)]
    tolerance = TOLERANCE
    if row["scope"] == "local_p_renormalised":
        # Divided by what little weight is left in the window, rounding in 32 bits grows.
        tolerance *= 10
    model = translator_of(row, tiny_model)
    assert_engine_answers_as_python(engine, model, questions, tolerance)


def test_comparison_notices_a_weight_that_differs(tiny_model, engine):
    ours, theirs = translator_of(ROWS[0], tiny_model), translator_of(ROWS[0], tiny_model)
    with torch.no_grad():
        theirs.model.output.weight += 0.01 * torch.randn_like(theirs.model.output.weight)
    questions = [("translate", {"text": "a b"})]
    with pytest.raises(AssertionError):
        assert_same(engine.answers(ours, questions), answers_of_python(theirs, questions))


@pytest.mark.parametrize("text", ["", "good film", "bad <b> film \u00a0 never seen"])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"intervene": {"kind": "uniform"}},
        {"intervene": {"kind": "permuted", "seed": 8}},
        {"intervene": {"temperature": 0.2, "hide": [0]}},
        {"intervene": {"mask_pads": False}, "edit": {"before": 2}},
        {"intervene": {"force": {"0": "good"}}},
        {"intervene": {"weights": {"1": [1.0]}}},
    ],
)
@pytest.mark.parametrize("labels", [2, 3])
def test_classifier_is_answered_as_by_python(engine, text, change, labels):
    classifier = build_review_classifier()
    if labels == 3:
        classifier.labels = ["bad", "good", "neither"]
        classifier.model.output = torch.nn.Linear(6, 3)
    questions = [(name, {"text": text, **change}) for name in ("classify", "step_numbers")]
    assert_engine_answers_as_python(engine, classifier, questions)


@pytest.mark.parametrize(
    "choices",
    [
        {"cell": "lstm", "attention": Part(BahdanauScore, size=5, bias=True)},
        {"cell": "rnn", "attention": Part(LocationScore, max_length=9)},
        {"attention": Part(DotScore), "heads": Part(MultiHeadAttention, heads=2, size=3)},
        {
            "attention": Part(CosineScore, initial_scale=2.0),
            "projection": Part(LinearProjection, size=3),
            "normaliser": Part(Sparsemax),
            "scope": Part(LocalP, width=2),
        },
        {"attention": Part(DotScore), "query": "learned"},
    ],
    ids=["bias", "location", "heads", "projected", "learned query"],
)
def test_classifier_of_other_parts_is_answered_as_by_python(engine, choices):
    classifier = build_review_classifier(**choices)
    bodies = [{"text": text} for text in ("", "good", "bad <b> film never seen")]
    bodies.append({"text": "good film", "edit": {"before": 1, "behind": 2}})
    questions = [(name, body) for name in ("classify", "step_numbers") for body in bodies]
    assert_engine_answers_as_python(engine, classifier, questions)


@pytest.mark.parametrize(
    "choices",
    [
        {"attention": Part(BahdanauScore, size=5, bias=True), "history": "coverage"},
        {"cell": "lstm", "layers": 3, "decoder_layers": 3, "attention": "general", "heads": 4},
        {"attention": Part(LocationScore, max_length=7)},
        {"attention": "general", "history": "monotonic", "scope": "local_p"},
        {"attention": "general", "history": "mocha", "scope": "local_p", "heads": 2},
        {"attention": "dot", "history": "soft_mocha"},
    ],
    ids=[
        "bias",
        "three_layers",
        "few_positions",
        "lowered_choices",
        "chunks",
        "mean_of_chunks",
    ],
)
def test_settings_beside_the_rows_of_choices_are_answered_as_by_python(choices, tiny_model, engine):
    row = {"joint_vocabulary": False, "padding": Padding(), "attention": "any"}
    model = tiny_model(**choices, scale=2.0, dtype=torch.float32, **SIZES)
    translator = Translator(model, SOURCE, TARGET, GREEDY)
    questions = [question for text in TEXTS[:2] for question in questions_about(row, text)]
    assert_engine_answers_as_python(engine, translator, questions)


HEADS = [
    {"kind": "uniform", "heads": [1]},
    {"kind": "permuted", "seed": 2, "heads": [0]},
    {"temperature": 0.3, "hide": [0, 2], "heads": [1]},
    {"hide": "all", "heads": [0]},
    {"weights": {"1": [0.1, 0.2, 0.3, 0.2, 0.2]}, "heads": [0, 2]},
]


@pytest.mark.parametrize("history", ["none", "coverage", "soft_mocha"])
@pytest.mark.parametrize("change", HEADS)
def test_change_of_some_heads_is_answered_as_by_python(change, history, tiny_model, engine):
    """Each head has its own formulas and weights, under the change and beside it."""
    choices = {"attention": "bahdanau", "heads": 3, "history": history, "decoder_hidden_size": 6}
    model = tiny_model(**choices, scale=2.0, dtype=torch.float32, **SIZES)
    translator = Translator(model, SOURCE, TARGET, GREEDY)
    asked = {"text": TEXTS[0], "target": [4, 5, 3], "intervene": change, "edit": {"behind": 2}}
    questions = [("score", asked), ("step_numbers", {**asked, "step": 1})]
    found, _ = assert_engine_answers_as_python(engine, translator, questions)

    everywhere = {name: value for name, value in change.items() if name != "heads"}
    (of_all,) = answers_of_python(translator, [("score", {**asked, "intervene": everywhere})])
    assert found["log_probs"] != pytest.approx(of_all["log_probs"], abs=1e-4)


PATCHES = [
    {"text": "g f e d", "keys": "all"},
    {"text": "g f e d", "values": "all", "state": True},
    {"text": "b", "keys": {0: 1, 4: 0}, "values": {2: 0}},
    {"text": "q q b a c d", "keys": {3: 6}},
    {"text": "", "state": True, "values": {4: 0}},
]


@pytest.mark.parametrize("heads", [None, 2])
@pytest.mark.parametrize("decoder", ["attend_then_step", "step_then_attend", "conditional_gru"])
@pytest.mark.parametrize("patch", PATCHES)
def test_patch_is_answered_as_by_python(patch, decoder, heads, tiny_model, engine):
    choices = {"attention": "general", "decoder": decoder, "heads": heads}
    model = tiny_model(**choices, scale=2.0, dtype=torch.float32, **SIZES)
    translator = Translator(model, SOURCE, TARGET, GREEDY)
    by_hand = {"weights": {0: [0.5, 0, 0, 0.5, 0]}}
    questions = []
    for change in ({"patch": patch}, {"patch": patch, **by_hand}):
        for edit in ({}, {"behind": 2}):
            asked = {"text": TEXTS[0], "intervene": change, "edit": edit}
            questions += [
                ("translate", asked),
                ("score", {**asked, "target": [4, 5, 3]}),
                ("beam", {**asked, "settings": {"size": 2}}),
            ]
    answers = assert_engine_answers_as_python(engine, translator, questions)
    own = ("score", {"text": TEXTS[0], "target": [4, 5, 3]})
    (before,) = answers_of_python(translator, [own])
    assert answers[1]["log_probs"] != pytest.approx(before["log_probs"], abs=1e-4)


def test_weights_of_another_sentence_are_taken_as_by_python(tiny_model, engine):
    model = tiny_model(attention="dot", scale=2.0, dtype=torch.float32, **SIZES)
    translator = Translator(model, SOURCE, TARGET, GREEDY)
    ask = {"text": "g f e d"}
    (other,) = assert_engine_answers_as_python(engine, translator, [("translate", ask)])
    taken = dict(enumerate(other["attention"]))
    asked = {"text": TEXTS[0], "intervene": {"weights": taken}}
    (answer,) = assert_engine_answers_as_python(engine, translator, [("translate", asked)])
    steps = min(len(answer["target"]), len(other["target"]))
    np.testing.assert_allclose(answer["attention"][:steps], other["attention"][:steps], atol=2e-6)
    direct = translator(TEXTS[0], intervene=Intervention(weights=translator("g f e d").attention))
    assert direct.text == answer["text"]


@pytest.mark.parametrize(
    ("choices", "patch", "words"),
    [
        ({}, {"text": "a b", "keys": "all"}, 'intervene: patch "all" needs sentences of the same'),
        ({}, {"text": "a b", "keys": {0: 3}}, "intervene: patch must take positions below 3, the"),
        (
            {},
            {"text": "a b", "values": {5: 0}},
            "intervene: patch must name positions below 5, the",
        ),
        (
            {"attention": Part(LocationScore, max_length=9)},
            {"text": "a b", "keys": {0: 0}},
            "intervene: patch takes keys, but the score of this model goes by positions",
        ),
        (
            {"bridge": "zero"},
            {"text": "a b", "state": True},
            "intervene: patch takes the state, but the decoder of this model starts with none",
        ),
        (
            {"decoder": "no_attention"},
            {"text": "a b", "values": {0: 0}},
            "intervene changes the attention, but the model has none; only force= and a patch of",
        ),
    ],
)
def test_patch_that_does_not_fit_is_refused_as_by_python(choices, patch, words, tiny_model, engine):
    model = tiny_model(**choices, scale=2.0, dtype=torch.float32, **SIZES)
    translator = Translator(model, SOURCE, TARGET, GREEDY)
    asked = ("translate", {"text": TEXTS[0], "intervene": {"patch": patch}})
    for answers in (engine.answers(translator, [asked]), answers_of_python(translator, [asked])):
        assert answers[0]["error"].startswith(words)


def test_formulas_of_a_step_and_classifiers_take_no_patch(tiny_model, engine):
    model = tiny_model(scale=2.0, dtype=torch.float32, **SIZES)
    translator = Translator(model, SOURCE, TARGET, GREEDY)
    patch = {"text": "a b", "state": True}
    step = ("step_numbers", {"text": "a", "target": [3], "intervene": {"patch": patch}})
    (refused,) = assert_engine_answers_as_python(engine, translator, [step])
    assert refused["error"].endswith("own keys, values and state; leave patch out")

    look = ("classify", {"text": "good", "intervene": {"patch": patch}})
    (refused,) = assert_engine_answers_as_python(engine, build_review_classifier(), [look])
    assert refused["error"] == "intervene: patch goes with models that translate alone"


def test_source_longer_than_the_location_score_knows_is_refused_as_by_python(tiny_model, engine):
    attention = Part(LocationScore, max_length=5)
    model = tiny_model(attention=attention, scale=2.0, dtype=torch.float32, **SIZES)
    questions = [("translate", {"text": text}) for text in ("a b c d", "a b c d e")]
    known, refused = assert_engine_answers_as_python(
        engine, Translator(model, SOURCE, TARGET, GREEDY), questions
    )
    assert "target" in known
    assert "model.attention.max_length is 5, but a source of 6 tokens" in refused["error"]


def test_pads_behind_the_positions_of_a_location_score_are_answered_as_by_python(
    tiny_model, engine
):
    attention = Part(LocationScore, max_length=5)
    model = tiny_model(attention=attention, scale=2.0, dtype=torch.float32, **SIZES)
    same = {"text": "a b c d", "target": [4, 5, 3], "step": 1}
    questions = [
        ("step_numbers", {**same, "edit": pads, **more})
        for pads in ({"behind": 2}, {"before": 3})
        for more in ({}, {"masking": "after"}, {"intervene": {"mask_pads": False}})
    ]
    answers = assert_engine_answers_as_python(
        engine, Translator(model, SOURCE, TARGET, GREEDY), questions
    )
    for hidden, after, read in (answers[:3], answers[3:]):
        weights = next(each for each in hidden["symbols"] if each["id"] == "α")["values"]
        assert sum(weights) == pytest.approx(1, abs=1e-4)
        for refused in (after, read):
            assert "model.attention.max_length is 5, but a source of " in refused["error"]


TOKENIZERS = {
    "whitespace": WordTrainer(split="whitespace", min_frequency=1),
    "words": WordTrainer(min_frequency=1),
    "lowercase_nfkc": WordTrainer(min_frequency=1, lowercase=True, normalization="nfkc"),
    "characters": CharacterTrainer(),
    "characters_nfd": CharacterTrainer(normalization="nfd"),
    "bpe": BpeTrainer(vocabulary_size=60, min_frequency=1),
}
WRITTEN = [
    "I am a student, isn't it?",
    "나는 학생입니다. 그는 12시에 왔다!",
    "Je suis étudiant; l'été à 20 °C (½ m²)…",
    "Ich möchte ein Bier.  ZWEI\u00a0Biere\tund mehr\u3000",
]
UNKNOWN = [
    "<eos> <pad> a▁b ▁",
    "ＦＵＬＬ width ﬁ ΑΣ",
    "\ufeff 👩‍🎓 e\u0301",
    "\u200b\x1c\x85x",
    " ",
]


@pytest.mark.parametrize("cleaning", [Cleaning(), Cleaning(unicode="nfkc", whitespace="keep")])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_text_becomes_the_same_tokens_as_in_python(name, cleaning, tiny_model, engine):
    tokenizers = [TOKENIZERS[name].train(side) for side in (WRITTEN, WRITTEN[1:])]
    translator = build_character_translator(tiny_model, tokenizers=tuple(tokenizers))
    translator.cleaning = cleaning
    questions = [
        ("score", {"text": text, "target": other})
        for text, other in zip([*WRITTEN, *UNKNOWN], [*UNKNOWN, *WRITTEN], strict=True)
    ]
    assert_engine_answers_as_python(engine, translator, questions)


@pytest.mark.parametrize(
    "body",
    [
        {"text": "May \ud800"},
        {"text": "May", "intervene": {"hide": [9]}},
        {"text": "May", "intervene": {"weights": {"0": [1, 0]}}},
        {"text": "May", "intervene": {"force": {"0": "ん"}}},
        {"text": "May", "settings": {"n_best": 4}},
    ],
)
def test_question_that_does_not_fit_is_refused_by_a_sentence(body, tiny_model, engine):
    translator = build_character_translator(tiny_model)
    questions = [("translate", body)]
    (found,) = engine.answers(translator, questions)
    (expected,) = answers_of_python(translator, questions)
    # The sentences may differ in how they show a value.
    assert found["error"][:20] == expected["error"][:20]


def test_unknown_kind_of_weights_is_refused(tiny_model, engine):
    body = {"text": "May", "intervene": {"kind": "other"}}
    (found,) = engine.answers(build_character_translator(tiny_model), [("translate", body)])
    assert found["error"] == "kind must be 'uniform', 'permuted' or null, got 'other'"


def test_marks_are_those_of_python(tiny_model, engine):
    translator = build_character_translator(tiny_model)
    body = {
        "ids": [4, 5, 6, 7, 3],
        "reference": [4, 6, 8, 3],
        "sure": [[0, 0], [1, 2], [3, 4]],
        "possible": [[0, 0], [2, 1]],
    }
    assert_engine_answers_as_python(engine, translator, [("marks", body)])
