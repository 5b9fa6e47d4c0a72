"""The base classes of corpora: what a corpus of one's own may leave out, and what it is told that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import datasets
import pytest

from attnlab.config.binding import bind
from attnlab.data.corpus import SPLITS, Cleaning, Corpus, SentenceCleaning, SentenceCorpus
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError

ROW = {"source": "a b", "target": "b a", "text": "a", "label": 1}


class Least(Corpus):
    """With no more than a corpus must have."""

    def __init__(self) -> None:
        self.tokenizer = WordTrainer()

    def load(self) -> dict[str, Any]:
        return {split: datasets.Dataset.from_list([ROW]) for split in SPLITS}


class LeastLabelled(SentenceCorpus):
    def __init__(self) -> None:
        self.tokenizer = WordTrainer()

    def load(self) -> dict[str, Any]:
        return Least().load()


class Bare(Least):
    def __init__(self) -> None:
        pass


class Misused(Least):
    def __init__(self, attribute: str, value: Any) -> None:
        super().__init__()
        setattr(self, attribute, value)


@dataclass
class WithFields(Least):
    cleaning: Cleaning
    tokenizer: TokenizerTrainer


class Loading(Least):
    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def load(self) -> dict[str, Any]:
        return self.found


def test_corpus_with_a_tokenizer_alone_has_defaults_for_the_rest() -> None:
    corpus = Least()
    assert (corpus.cleaning, corpus.bleu_tokenize) == (Cleaning(), "13a")
    others = ("rouge", "source_language", "target_language", "limit", "source_tokenizer", "target_tokenizer")
    assert [getattr(corpus, name) for name in others] == [None] * len(others)
    assert not corpus.joint
    labelled = LeastLabelled()
    assert (labelled.cleaning, labelled.label_names, labelled.limit) == (SentenceCleaning(), None, None)
    with pytest.raises(AttributeError, match="Least has no attribute 'limits'"):
        corpus.limits  # type: ignore[attr-defined]  # noqa: B018


def test_dataclass_of_a_corpus_takes_no_defaults_from_its_base() -> None:
    with pytest.raises(TypeError, match="missing 2 required positional arguments: 'cleaning' and 'tokenizer'"):
        WithFields()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        ({"_target_": "Bare"}, "data: Bare lacks tokenizer, which every Corpus sets in its constructor"),
        (
            {"_target_": "Misused", "attribute": "tokenizer", "value": "word"},
            "data: Misused has 'word' for tokenizer, which must be TokenizerTrainer",
        ),
        (
            {"_target_": "Misused", "attribute": "source_tokenizer", "value": "word"},
            "data: Misused has 'word' for source_tokenizer, which must be TokenizerTrainer or None",
        ),
        (
            {"_target_": "Misused", "attribute": "bleu_tokenize", "value": "13b"},
            "data: Misused has '13b' for bleu_tokenize, which must be none or 13a or intl or char or zh",
        ),
    ],
)
def test_bind_corpus_that_lacks_or_misuses_an_attribute_is_refused(node: dict[str, Any], problem: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        bind(node | {"_target_": f"{__name__}.{node['_target_']}"}, Corpus, "data")
    assert caught.value.problems == [problem]


ROWS = datasets.Dataset.from_list([ROW])
OTHER = datasets.Dataset.from_list([{"src": "a", "target": "b"}])


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "a dataset for each of train, validation, test, got NoneType"),
        ({"train": ROWS, "test": ROWS}, "a dataset for each of train, validation, test, got train, test"),
        ({split: [ROW] for split in SPLITS}, "a datasets.Dataset for each of .*, but train is a list; .*from_list"),
        (
            dict.fromkeys(SPLITS, ROWS) | {"test": OTHER},
            "rows with the columns source and target, but those of the test split have src, target",
        ),
    ],
)
def test_loaded_rows_that_cannot_be_prepared_are_refused(found: Any, reason: str) -> None:
    assert Least().load_checked().keys() == set(SPLITS)
    with pytest.raises(ExperimentError, match=f"^data: Loading.load must return {reason}"):
        Loading(found).load_checked()
