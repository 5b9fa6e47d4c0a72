"""The base classes of corpora: what a user's corpus may leave out, and errors for what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pytest

from attnlab.config.binding import bind
from attnlab.data.corpus import SPLITS, Cleaning, Corpus, SentenceCleaning, SentenceCorpus
from attnlab.data.prepare import prepare
from attnlab.data.row_kinds import Pairs
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
    others = (
        "rouge",
        "source_language",
        "target_language",
        "limit",
        "source_tokenizer",
        "target_tokenizer",
    )
    assert [getattr(corpus, name) for name in others] == [None] * len(others)
    assert not corpus.joint
    labelled = LeastLabelled()
    assert (labelled.cleaning, labelled.label_names, labelled.limit) == (
        SentenceCleaning(),
        None,
        None,
    )
    with pytest.raises(AttributeError, match="Least has no attribute 'limits'"):
        corpus.limits  # type: ignore[attr-defined]  # noqa: B018


def test_dataclass_of_a_corpus_takes_no_defaults_from_its_base() -> None:
    with pytest.raises(
        TypeError, match="missing 2 required positional arguments: 'cleaning' and 'tokenizer'"
    ):
        WithFields()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (
            {"_target_": "Bare"},
            "data: Bare lacks tokenizer, which every Corpus sets in its constructor",
        ),
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
            "data: Misused has '13b' for bleu_tokenize, "
            "which must be none or 13a or intl or char or zh",
        ),
        (
            {"_target_": "Misused", "attribute": "limit", "value": "5"},
            "data: Misused has '5' for limit, which must be a whole number or None",
        ),
        (
            {"_target_": "Misused", "attribute": "source_language", "value": 3},
            "data: Misused has 3 for source_language, which must be text or None",
        ),
        (
            {"_target_": "Misused", "attribute": "notes", "value": "short"},
            "data: Misused has 'short' for notes, which must be a list of text",
        ),
    ],
)
def test_bind_corpus_that_lacks_or_misuses_an_attribute_is_refused(
    node: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ExperimentError) as caught:
        bind(node | {"_target_": f"{__name__}.{node['_target_']}"}, Corpus, "data")
    assert caught.value.problems == [problem]


ROWS = datasets.Dataset.from_list([ROW])
OTHER = datasets.Dataset.from_list([{"src": "a", "target": "b"}])


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "a dataset for each of train, validation, test, got NoneType"),
        (
            {"train": ROWS, "test": ROWS},
            "a dataset for each of train, validation, test, got train, test",
        ),
        (
            {split: [ROW] for split in SPLITS},
            "a datasets.Dataset for each of .*, but train is a list; .*from_list",
        ),
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


def test_load_that_fails_is_reported_with_its_line() -> None:
    class Absent(Least):
        def load(self) -> dict[str, Any]:
            return {"train": {}["nokey"]}

    with pytest.raises(
        ExperimentError,
        match=r"^data: Absent.load failed: KeyError: 'nokey' \(test_corpus.py, line \d+",
    ):
        Absent().load_checked()


def test_class_without_load_is_told_what_it_lacks() -> None:
    with pytest.raises(ExperimentError, match=r"it lacks load, which every Corpus has$"):
        bind({"_target_": f"{__name__}.WithoutLoad"}, Corpus, "data")


class WithoutLoad(Corpus):
    def __init__(self) -> None:
        self.tokenizer = WordTrainer()


def test_empty_split_is_refused_as_one_that_load_left_empty(tmp_path: Path) -> None:
    found = dict.fromkeys(SPLITS, ROWS) | {"test": ROWS.select([])}
    with pytest.raises(
        ExperimentError, match=r"^data: Loading.load returned no rows for the test split$"
    ):
        prepare(Loading(found), Pairs, tmp_path / "data")


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        (
            {"source_spans": [[0, 1], [2, 3]], "target_spans": [[0, 1]]},
            "must give as many of one side as of the other",
        ),
        ({"source_spans": [[0, 1]]}, "returned source_spans alone"),
    ],
)
def test_spans_of_one_side_alone_are_refused(
    tmp_path: Path, spans: dict[str, Any], reason: str
) -> None:
    rows = datasets.Dataset.from_list([ROW | spans])
    with pytest.raises(ExperimentError, match=reason):
        prepare(Loading(dict.fromkeys(SPLITS, rows)), Pairs, tmp_path / "data")
