"""Texts of users in other forms than the training data.

The model reads them as if they were in the form of the training data.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_folders import CLEANING, FORMS, SOURCES, TARGETS, write_classifier, write_translator

from attnlab import api
from attnlab.data.corpus import Cleaning, SentenceCleaning
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.classification.classifier import ClassifiedText
from attnlab.tasks.cleaning import cleaned, cleaning_of
from attnlab.tasks.translation.answers import Translation

LIMITED = CLEANING | {"max_source_length": 2, "max_characters": 5}


@pytest.fixture(scope="module")
def cleaning_translator(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return api.load(write_translator(tmp_path_factory.mktemp("translator"), cleaning=CLEANING))


@pytest.fixture(scope="module")
def cleaning_classifier(tmp_path_factory: pytest.TempPathFactory) -> Any:
    cleaning = CLEANING | {"_target_": "attnlab.data.corpus.SentenceCleaning"}
    return api.load(write_classifier(tmp_path_factory.mktemp("classifier"), cleaning))


def assert_same_translation(answer: Translation, clean: Translation) -> None:
    assert (answer.text, answer.tokens, answer.source_tokens) == (
        clean.text,
        clean.tokens,
        clean.source_tokens,
    )
    assert answer.score == pytest.approx(clean.score, abs=1e-6)
    assert answer.attention is not None
    assert clean.attention is not None
    np.testing.assert_allclose(answer.attention, clean.attention, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_translator_given_another_form_answers_as_for_the_clean_text(
    cleaning_translator: Any, form: str
) -> None:
    texts = [FORMS[form](text) for text in SOURCES]
    assert texts != SOURCES
    for text, answer, clean in zip(
        texts, cleaning_translator(texts), cleaning_translator(SOURCES), strict=True
    ):
        assert_same_translation(answer, clean)
        assert answer.source == text
    best = cleaning_translator(texts[0], n_best=2)
    assert [each.source for each in best.alternatives] == [texts[0]]


@pytest.mark.parametrize("form", FORMS)
def test_classifier_given_another_form_answers_as_for_the_clean_text(
    cleaning_classifier: Any, form: str
) -> None:
    texts = [FORMS[form](text) for text in SOURCES]
    answers: list[ClassifiedText] = cleaning_classifier(texts)
    for text, answer, clean in zip(texts, answers, cleaning_classifier(SOURCES), strict=True):
        assert (answer.text, answer.label, answer.tokens) == (text, clean.label, clean.tokens)
        assert answer.probabilities == pytest.approx(clean.probabilities, abs=1e-6)
        np.testing.assert_allclose(answer.attention, clean.attention, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_score_cleans_source_and_target(cleaning_translator: Any, form: str) -> None:
    source, target = FORMS[form](SOURCES[0]), FORMS[form]("go to school")
    scored, clean = (
        cleaning_translator.score(source, target),
        cleaning_translator.score(SOURCES[0], "go to school"),
    )
    assert (scored.source, scored.target) == (source, target)
    assert (scored.tokens, scored.source_tokens) == (clean.tokens, clean.source_tokens)
    assert scored.total == pytest.approx(clean.total, abs=1e-6)


def test_blank_text_after_cleaning_gets_a_translation_without_tokens(
    cleaning_translator: Any,
) -> None:
    answer = cleaning_translator("\u00a0\u3000\r")
    assert (answer.source, answer.text, answer.tokens) == ("\u00a0\u3000\r", "", [])


def test_intervention_counts_the_tokens_of_the_cleaned_text(cleaning_translator: Any) -> None:
    spaced = "나는  \u00a0 학교 에  간다  "
    change = Intervention(hide=[1, 4], force={0: "g"})
    assert_same_translation(
        cleaning_translator(spaced, intervene=change),
        cleaning_translator(SOURCES[0], intervene=change),
    )
    with pytest.raises(ExperimentError, match="hide must name positions below 5"):
        cleaning_translator(spaced, intervene=Intervention(hide=[5]))
    total = cleaning_translator.score(spaced, "go  to", change).total
    assert total == pytest.approx(cleaning_translator.score(SOURCES[0], "go to", change).total)


def test_forced_token_in_another_unicode_form_is_found(translator: Any) -> None:
    ours = translator()
    ours.target_tokenizer = WordTrainer(min_frequency=1).train([*TARGETS, "학교 é a b"])
    decomposed = Intervention(force={0: unicodedata.normalize("NFD", "학교"), 1: "e\u0301"})
    with pytest.raises(ExperimentError, match="is no token that the model can write"):
        ours.forced(decomposed)
    ours.cleaning = Cleaning()
    assert ours.forced(decomposed) == ours.forced(Intervention(force={0: "학교", 1: "é"}))
    with pytest.raises(ExperimentError, match="' ' is no token that the model can write"):
        ours.forced(Intervention(force={0: " "}))


def test_replaced_unknown_word_is_copied_from_the_cleaned_source(translator: Any) -> None:
    """Offsets count characters of the encoded text.

    Those of the given text would cut out other words.
    """
    ours = translator()
    ours.cleaning = Cleaning()
    clean = "나는 비행기 에 간다"
    force = Intervention(force={0: "<unk>", 1: "<eos>"}, weights={0: [0.0, 1.0, 0.0, 0.0, 0.0]})
    given = FORMS["double spaces"](FORMS["decomposed"](f" {clean}"))
    assert ours(clean, replace_unknown=True, intervene=force).text == "비행기"
    assert ours(given, replace_unknown=True, intervene=force).text == "비행기"


def test_limits_of_length_drop_no_text_of_a_user(tmp_path: Path, translator_folder: Path) -> None:
    """Neither the limits in tokens nor those in characters: they say which rows train a model."""
    limited, plain = (
        api.load(write_translator(tmp_path, cleaning=LIMITED)),
        api.load(translator_folder),
    )
    long = " ".join(["학교 에 간다"] * 4_000)
    assert len(long) > Cleaning().max_characters
    for text in (SOURCES[4], long):
        assert_same_translation(limited(text, max_length=3), plain(text, max_length=3))
    (tmp_path / "classes").mkdir()
    cleaning = {
        "_target_": "attnlab.data.corpus.SentenceCleaning",
        "max_length": 1,
        "max_characters": 2,
    }
    classifier = api.load(write_classifier(tmp_path / "classes", cleaning))
    assert len(classifier(SOURCES[4]).tokens) == 7


def test_model_of_a_corpus_that_keeps_its_texts_reads_them_as_they_are(
    tmp_path: Path, translator_folder: Path
) -> None:
    kept = {"_target_": "attnlab.data.corpus.Cleaning", "unicode": "none", "whitespace": "keep"}
    for folder in (translator_folder, write_translator(tmp_path, cleaning=kept)):
        decomposed = api.load(folder)(FORMS["decomposed"](SOURCES[0]))
        assert set(decomposed.source_tokens[:-1]) == {"<unk>"}


# What a config says of the cleaning, and the `unicode` and `whitespace` that it means.
OURS = "attnlab.data.corpus.Cleaning"
OF_SENTENCES = {
    "_target_": "attnlab.data.corpus.SentenceCleaning",
    "unicode": "nfkc",
    "max_length": 3,
}
OLDER = {"_target_": "attnlab.data.cleaning.Cleaning", "whitespace": "keep", "min_length": 1}
CONFIGS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "no section data": ({}, ("none", "keep")),
    "a generated corpus": (
        {"data": {"_target_": "attnlab.data.dates.DatesCorpus"}},
        ("none", "keep"),
    ),
    "a corpus that is gone": (
        {"data": {"_target_": "nowhere.Corpus", "cleaning": CLEANING}},
        ("nfc", "collapse"),
    ),
    "defaults": ({"data": {"cleaning": {"_target_": OURS}}}, ("nfc", "collapse")),
    "labelled": ({"data": {"cleaning": OF_SENTENCES}}, ("nfkc", "collapse")),
    "an older version": ({"data": {"cleaning": OLDER}}, ("nfc", "keep")),
    "set in code": (
        {"data": {"_target_": "own.Corpus"}, "cleaning": {"_target_": OURS, "unicode": "nfkc"}},
        ("nfkc", "collapse"),
    ),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_config_of_a_model_folder_says_the_form(case: str) -> None:
    config, form = CONFIGS[case]
    found = cleaning_of(config)
    assert (found.unicode, found.whitespace) == form


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            {"_target_": "attnlab.data.corpus.Cleaning", "unicode": "nfd"},
            "data.cleaning.unicode must be one of none, nfc",
        ),
        (
            {"_target_": "attnlab.data.corpus.Cleaning", "whitespace": 3},
            "data.cleaning.whitespace must be one of",
        ),
        ("nfc", "data.cleaning must be "),
        (
            {"_target_": "os.mkdir", "path": "mark"},
            "data.cleaning of this model folder names classes of os;",
        ),
    ],
)
def test_wrong_cleaning_of_a_model_folder_is_refused_in_a_sentence(
    node: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExperimentError, match=message):
        cleaning_of({"data": {"cleaning": node}})
    assert not list(tmp_path.iterdir())


def test_foreign_corpus_is_not_imported_for_its_cleaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "attnlab_foreign_corpus.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    folder = write_translator(tmp_path, cleaning=CLEANING)
    config = json.loads((folder / "config.json").read_text())
    config["data"]["_target_"] = "attnlab_foreign_corpus.Corpus"
    (folder / "config.json").write_text(json.dumps(config))
    assert api.load(folder).cleaning.unicode == "nfc"
    assert "attnlab_foreign_corpus" not in sys.modules


def test_foreign_class_of_cleaning_needs_to_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "attnlab_own_cleaning.py").write_text(
        "from attnlab.data.corpus import Cleaning\n"
        "class Own(Cleaning):\n"
        "    def tidy(self, text):\n"
        "        return super().tidy(text).replace('학원', '학교')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = write_translator(
        tmp_path, cleaning=CLEANING | {"_target_": "attnlab_own_cleaning.Own"}
    )
    with pytest.raises(
        ExperimentError,
        match=r"data.cleaning of this model folder names classes of attnlab_own_cleaning",
    ):
        api.load(folder)
    assert "attnlab_own_cleaning" not in sys.modules
    ours = api.load(folder, allow=["attnlab_own_cleaning"])
    assert_same_translation(ours("나는 학원 에  간다"), ours("나는 학교 에 간다"))


@pytest.mark.parametrize("text", ["학교\ud800", "\udcff", None, 3, b"bytes"])
def test_what_is_no_text_is_refused_in_a_sentence(
    cleaning_translator: Any, cleaning_classifier: Any, text: Any
) -> None:
    asks: list[Callable[[], Any]] = [
        lambda: cleaning_translator(["학교", text]),
        lambda: cleaning_classifier(["학교", text]),
        lambda: cleaning_translator.score(["학교"], [text]),
    ]
    for ask in asks:
        with pytest.raises(ExperimentError, match="each text must be"):
            ask()


# Combining marks, many kinds of white space, a byte order mark, syllables and their parts,
# and compatibility forms of letters.
PIECES = st.sampled_from([
    *"ae \u0301\u0327\u0323\u00a0\u3000\u2028\x85\x1c\r\n\t\u200b\u00ad\ufeff",
    *"é한\u1112\u1161\u11abﬁ①ｶﾞ\u212b",
])  # fmt: skip


@given(
    text=st.lists(PIECES, max_size=12).map("".join),
    unicode=st.sampled_from(["none", "nfc", "nfkc"]),
)
def test_cleaning_twice_is_cleaning_once(text: str, unicode: Any) -> None:
    """A model asked for rows of prepared data reads the bytes that it was trained on."""
    for cleaning in (
        Cleaning(unicode=unicode),
        SentenceCleaning(unicode=unicode, whitespace="keep"),
    ):
        once = cleaned([text], cleaning)
        assert cleaned(once, cleaning) == once
