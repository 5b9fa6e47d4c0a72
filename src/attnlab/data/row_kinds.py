"""Kinds of rows: what becomes of a raw row when data are prepared.

Sentence pairs and labelled sentences are two; a task names its own.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from attnlab.data.corpus import Corpus, SentenceCorpus, TextCleaning
from attnlab.data.labels import label_of
from attnlab.data.padding import Ragged
from attnlab.data.pharaoh import count_words, links_between_tokens, words_of_tokens
from attnlab.data.prepared import FORMAT, DataInfo, LabelledInfo
from attnlab.data.rows import open_rows
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError, show

if TYPE_CHECKING:
    import datasets

Tokenizers = dict[str, Tokenizer]  # by side
Span = Sequence[int]  # [start, end) in characters
Link = list[int]  # [target position, source position]

_IDS = pa.list_(pa.int32())
_PAIRS = pa.list_(pa.list_(pa.int32()))


class RowKind(ABC):
    """What becomes of the raw rows of a corpus: columns, cleaning, and what is learnt of them.

    unit: the name of a row in the statistics.
    sides: the columns of text, and the prefix of each in the names of files and columns.
    source_side: that which the encoder reads.
    written_side: that which a model writes; empty where it writes no text.
    raw_columns: what a raw row holds.
    settings: those that choose the columns, for messages.

    cleaning: of the corpus.
    cleaned_schema, schema: of the clean rows, and of the prepared ones.
    class_names: where rows have classes, by their numbers.
    """

    unit: ClassVar[str]
    sides: ClassVar[Mapping[str, str]]
    source_side: ClassVar[str]
    written_side: ClassVar[str] = ""
    raw_columns: ClassVar[tuple[str, ...]]
    settings: ClassVar[str]

    cleaning: TextCleaning
    cleaned_schema: pa.Schema
    schema: pa.Schema
    class_names: Sequence[str] = ()

    def __init__(self, corpus: Any, train: datasets.Dataset) -> None:
        """Take the settings of a corpus; train: the raw rows of its training split."""
        self.corpus = corpus
        self.cleaning = corpus.cleaning

    @abstractmethod
    def clean(self, rows: dict[str, list[Any]]) -> Iterator[list[Any] | str]:
        """For each raw row the values of `cleaned_schema`, or the reason to drop it."""

    def learn(self, train: Path) -> None:  # noqa: B027
        """Take from the clean training split, a file, what the rows need; nothing by default."""

    def train_tokenizers(self, *sides: Iterator[str]) -> list[Tokenizer]:
        """The tokenizer of each side, trained on the texts of the training split."""
        return self.corpus.tokenizer.train_sides(*sides)

    def encode(self, rows: pa.RecordBatch, tokenizers: Tokenizers) -> dict[str, Ragged]:
        """The ids of each side of clean rows."""
        return {side: tokenizers[side].encode_rows(rows[side].to_pylist()) for side in self.sides}

    def more(self, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str) -> dict[str, Any]:
        """The columns beside texts and ids, of clean rows; none by default."""
        return {}

    @abstractmethod
    def info(self) -> Any:
        """The content of `data.json`, a dataclass."""


class Pairs(RowKind):
    """Sentence pairs, with their alignments where the corpus knows them."""

    unit = "pairs"
    sides = {"source": "source_", "target": "target_"}  # noqa: RUF012
    source_side = "source"
    written_side = "target"
    raw_columns = ("source", "target")
    settings = "data.source and data.target"

    def __init__(self, corpus: Corpus, train: datasets.Dataset) -> None:
        super().__init__(corpus, train)
        gold = {"source_spans": _PAIRS, "target_spans": _PAIRS, "alignments": pa.string()}
        # The columns of gold alignments that the corpus has, with their types.
        self._gold = {name: kind for name, kind in gold.items() if name in train.column_names}
        self._has_words = "alignments" in self._gold
        spans = [name for name in self._gold if name.endswith("_spans")]
        if len(spans) == 1:
            raise ExperimentError(
                f"data: {type(corpus).__name__}.load returned {spans[0]} alone; it must return "
                "both source_spans and target_spans, or neither"
            )

        texts = dict.fromkeys(self.sides, pa.string())
        self.cleaned_schema = pa.schema(texts | self._gold)
        prepared = texts | dict.fromkeys(("source_ids", "target_ids"), _IDS)
        if self._gold:
            prepared |= dict.fromkeys(("sure_links", "possible_links"), _PAIRS)
        if self._has_words:
            prepared |= dict.fromkeys(("source_words", "target_words"), _IDS)
        self.schema = pa.schema(prepared)

    def clean(self, rows: dict[str, list[Any]]) -> Iterator[list[Any] | str]:
        for i, (source, target) in enumerate(zip(rows["source"], rows["target"], strict=False)):
            gold = {name: rows[name][i] for name in self._gold}
            self._check_spans(source, target, gold)
            texts = self.cleaning.clean(source, target)
            if isinstance(texts, str):
                yield texts
            # A no-break space, or a compatibility form (NFKC) that breaks a word: links may count
            # other words.
            elif self._has_words and _has_other_words(texts, [source, target]):
                yield "other_words"
            else:
                yield [*texts, *gold.values()]

    def _check_spans(self, source: Any, target: Any, gold: dict[str, Any]) -> None:
        """Raise ExperimentError where fields of one side have none on the other side."""
        if "source_spans" not in gold:
            return
        ours = gold["source_spans"]
        theirs = gold["target_spans"]
        if ours is None or theirs is None or len(ours) != len(theirs):
            raise ExperimentError(
                f"data: the pair {show(source, 60)} → {show(target, 60)} has the source_spans "
                f"{show(ours, 60)} and the target_spans {show(theirs, 60)}; "
                f"{type(self.corpus).__name__}.load must give as many of one side as of the "
                "other"
            )

    def train_tokenizers(self, *sides: Iterator[str]) -> list[Tokenizer]:
        return self.corpus.train_tokenizers(*sides)

    def encode(self, rows: pa.RecordBatch, tokenizers: Tokenizers) -> dict[str, Ragged]:
        """As `RowKind.encode`; a target has the unknown words of its source."""
        sources = rows["source"].to_pylist()
        targets = rows["target"].to_pylist()
        words = tokenizers["source"].numbered_words(sources)
        return {
            "source": tokenizers["source"].encode_rows(sources),
            "target": tokenizers["target"].encode_rows(targets, words),
        }

    def more(self, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str) -> dict[str, Any]:
        if not self._gold:
            return {}
        source = rows["source"].to_pylist()
        target = rows["target"].to_pylist()
        source_offsets = tokenizers["source"].offsets(source)
        target_offsets = tokenizers["target"].offsets(target)

        more: dict[str, Any] = {}
        if self._has_words:
            more["source_words"] = list(map(words_of_tokens, source, source_offsets))
            more["target_words"] = list(map(words_of_tokens, target, target_offsets))
            written = rows["alignments"].to_pylist()
            links = map(links_between_tokens, written, more["source_words"], more["target_words"])
        else:
            source_spans = rows["source_spans"].to_pylist()
            target_spans = rows["target_spans"].to_pylist()
            links = map(links_between, source_offsets, target_offsets, source_spans, target_spans)

        more["sure_links"] = []
        more["possible_links"] = []
        for sure, possible in links:
            more["sure_links"].append(sure)
            more["possible_links"].append(possible)
        return more

    def info(self) -> DataInfo:
        return DataInfo(
            format=FORMAT,
            source_language=self.corpus.source_language,
            target_language=self.corpus.target_language,
            bleu_tokenize=self.corpus.bleu_tokenize,
            joint=self.corpus.joint,
            has_alignments=bool(self._gold),
            rouge=self.corpus.rouge,
        )


def _has_other_words(cleaned: Sequence[str], raw: Sequence[str]) -> bool:
    """Whether a text has another number of words than those that its links count."""
    return any(
        len(text.split()) != count_words(before) for text, before in zip(cleaned, raw, strict=True)
    )


def links_between(
    source_offsets: Sequence[Span],
    target_offsets: Sequence[Span],
    source_spans: Sequence[Span],
    target_spans: Sequence[Span],
) -> tuple[list[Link], list[Link]]:
    """(sure, possible) links between the tokens of aligned fields; every sure one is possible too.

    Every token of a field is a possible link to every token of the same field on the other side;
    the link is sure where both are one token. A token belongs to each field that it has a character
    of.
    """
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for source_span, target_span in zip(source_spans, target_spans, strict=True):
        sources = _tokens_in(source_offsets, source_span)
        targets = _tokens_in(target_offsets, target_span)
        links = {(t, s) for t in targets for s in sources}
        possible |= links
        if len(links) == 1:
            sure |= links
    return [list(link) for link in sorted(sure)], [list(link) for link in sorted(possible)]


def _tokens_in(offsets: Sequence[Span], span: Span) -> list[int]:
    """The positions of the tokens that have a character of the span."""
    first, last = span
    return [i for i, (start, end) in enumerate(offsets) if max(start, first) < min(end, last)]


class Sentences(RowKind):
    """Labelled sentences, whose classes are the labels of the training split.

    Whole numbers are sorted by size, labels of text alphabetically.
    """

    unit = "sentences"
    sides = {"text": ""}  # noqa: RUF012
    source_side = "text"
    raw_columns = ("text", "label")
    settings = "data.text and data.label"
    cleaned_schema = pa.schema({"text": pa.string(), "label": pa.string()})  # the label as JSON
    schema = pa.schema({"text": pa.string(), "label": pa.int32(), "ids": _IDS})

    def __init__(self, corpus: SentenceCorpus, train: datasets.Dataset) -> None:
        super().__init__(corpus, train)
        self._names = corpus.label_names
        self._own_names = getattr(train.features["label"], "names", None)

    def clean(self, rows: dict[str, list[Any]]) -> Iterator[list[Any] | str]:
        for text, raw_label in zip(rows["text"], rows["label"], strict=True):
            label = label_of(raw_label, self.cleaning.tidy)
            if label is None:
                yield "no_label"
                continue
            texts = self.cleaning.clean(text)
            yield texts if isinstance(texts, str) else [*texts, json.dumps(label)]

    def learn(self, train: Path) -> None:
        """Take the classes from the cleaned training split.

        Raises ExperimentError if they are unsuitable.
        """
        different = open_rows(train)["label"].unique().to_pylist()
        labels = sorted(json.loads(label) for label in different)
        if len(labels) < 2:
            raise ExperimentError(
                "data.label: a classifier needs at least two classes, but every label of the "
                f"training split is {labels[0]!r}; choose another column by data.label"
            )
        names = self._names
        if names is not None and labels != list(range(len(names))):
            raise ExperimentError(
                f"data.label_names has {len(names)} names for the labels 0 to {len(names) - 1}, "
                f"but the labels of the training split are {show(labels)}; give each of 0, 1, ... "
                "its name, or null"
            )
        if names is None:
            known = dict(enumerate(self._own_names or []))
            names = [known.get(label, str(label)) for label in labels]
        self.class_names = names
        self._labels = labels
        # The number of each class by its label, as the clean rows have it.
        self._numbers = {json.dumps(label): number for number, label in enumerate(labels)}

    def more(self, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str) -> dict[str, Any]:
        labels = rows["label"].to_pylist()
        unseen = [json.loads(label) for label in labels if label not in self._numbers]
        if unseen:
            raise ExperimentError(
                f"data.label: the {split} split has the label {unseen[0]!r}, which no sentence of "
                f"the training split has (it has {show(self._labels)}), so that no model can learn "
                "it; leave such rows out, or choose other data.splits"
            )
        return {"label": [self._numbers[label] for label in labels]}

    def info(self) -> LabelledInfo:
        return LabelledInfo(format=FORMAT, labels=list(self.class_names))
