"""From a corpus to the folder that training reads: clean, tokenise, encode, count, write.

The folder is a function of the corpus alone, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from attnlab.data.classes import Classes, Label, label_of
from attnlab.data.cleaning import TextCleaning
from attnlab.data.corpus import SPLITS, Corpus
from attnlab.data.hub import LabelledCorpus
from attnlab.data.prepared import FORMAT, DataInfo, LabelledInfo
from attnlab.data.rows import RowGroups, batches_of_file, batches_of_rows, list_array, write_json
from attnlab.data.stats import SplitCounter, kept_rows
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.files import atomic_folder

if TYPE_CHECKING:
    import datasets

Progress = Callable[[str, int, int], None]
"""Called with the current step, the number of rows done, and the number of all rows."""
Tokenizers = dict[str, Tokenizer]  # by side
Span = Sequence[int]  # [start, end) in characters
Link = list[int]  # [target position, source position]

_IDS = pa.list_(pa.int32())
_PAIRS = pa.list_(pa.list_(pa.int32()))


def prepare(corpus: Corpus | LabelledCorpus, folder: Path, progress: Progress | None = None) -> None:
    """Writes the prepared data of `corpus` to `folder`, whole or not at all.

    Raises ExperimentError where a split has no row left, or where the labels cannot be learnt.
    """
    report = progress or (lambda *_: None)
    report("load", 0, 1)
    splits = corpus.load()
    train = splits["train"]
    kind: _Kind = _Pairs(corpus, train) if isinstance(corpus, Corpus) else _Sentences(corpus, train)
    counters = {split: SplitCounter(kind.unit, list(kind.sides)) for split in SPLITS}
    with atomic_folder(folder) as temporary:
        # The tokenisers read all sentences before the first is encoded: cleaned ones stay in a file, not in memory.
        cleaned = {split: temporary / f"{split}.cleaned" for split in SPLITS}
        for split in SPLITS:
            _clean(kind, splits[split], cleaned[split], counters[split].dropped, report)
            if counters[split].dropped.total() == len(splits[split]):
                raise ExperimentError(_nothing_left(split, counters[split].dropped, kind.columns))
        report("tokenizer", 0, 1)
        kind.learn(cleaned["train"])
        learnt = corpus.tokenizer.train_sides(*(_texts(cleaned["train"], side) for side in kind.sides))
        tokenizers = dict(zip(kind.sides, learnt, strict=True))
        for side, prefix in kind.sides.items():
            tokenizers[side].save(temporary / f"{prefix}tokenizer.json")
        for split in SPLITS:
            rows = len(splits[split]) - counters[split].dropped.total()
            with RowGroups(temporary / f"{split}.arrow", kind.schema) as file:
                for start, batch in batches_of_file(cleaned[split]):
                    report(split, start, rows)
                    file.add(_encode(kind, batch, tokenizers, split, counters[split]))
            report(split, rows, rows)
            if counters[split].kept == 0:
                raise ExperimentError(_nothing_left(split, counters[split].dropped, kind.columns))
            cleaned[split].unlink()
        stats = {
            "vocabulary": {side: tokenizer.size for side, tokenizer in tokenizers.items()},
            "splits": {split: counter.summary(kind.class_names) for split, counter in counters.items()},
        }
        write_json(temporary / "stats.json", stats)
        write_json(temporary / "data.json", asdict(kind.info()))


def _texts(cleaned: Path, column: str) -> Iterator[str]:
    for _, rows in batches_of_file(cleaned):
        yield from rows[column].to_pylist()


def _clean(kind: _Kind, dataset: datasets.Dataset, path: Path, dropped: Counter[str], report: Progress) -> None:
    with RowGroups(path, kind.cleaned_schema) as file:
        for start, rows in batches_of_rows(dataset):
            report("clean", start, len(dataset))
            columns: list[list[Any]] = [[] for _ in kind.cleaned_schema]
            for row in kind.clean(rows):
                if isinstance(row, str):
                    dropped[row] += 1
                    continue
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
            file.add(dict(zip(kind.cleaned_schema.names, columns, strict=True)))


def _encode(
    kind: _Kind, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str, counter: SplitCounter
) -> dict[str, Any]:
    """The columns of the rows that are within the limits."""
    ids = {side: tokenizers[side].encode_rows(rows[side].to_pylist()) for side in kind.sides}
    lengths = [each.lengths for each in ids.values()]
    # A normaliser may leave nothing of a text that looked like one.
    empty = np.any([each == 0 for each in lengths], axis=0)
    kept = kept_rows(counter.dropped, ("empty", empty), *kind.cleaning.over_limit(lengths, split))
    rows, ids = rows.take(pa.array(kept)), {side: each.take(kept) for side, each in ids.items()}
    more = kind.more(rows, tokenizers, split)
    counter.add(ids, more.get("label", ()))
    columns = {side: rows[side] for side in kind.sides}
    return columns | {f"{kind.sides[side]}ids": list_array(each) for side, each in ids.items()} | more


class _Kind(Protocol):
    """What differs between sentence pairs and labelled sentences.

    sides: the columns of text, and the prefix of each in other names (`source_`).
    columns: the settings that choose the columns.
    """

    unit: str
    sides: dict[str, str]
    columns: str
    cleaning: TextCleaning
    cleaned_schema: pa.Schema
    schema: pa.Schema
    class_names: list[str]

    def clean(self, rows: dict[str, list[Any]]) -> Iterator[list[Any] | str]:
        """For each raw row the values of `cleaned_schema`, or the reason to drop it."""

    def learn(self, train: Path) -> None:
        """Takes what it must know of the clean training split."""

    def more(self, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str) -> dict[str, Any]:
        """The columns beside texts and ids, of clean rows."""

    def info(self) -> DataInfo | LabelledInfo:
        """The content of `data.json`."""


class _Pairs:
    def __init__(self, corpus: Corpus, train: datasets.Dataset) -> None:
        self.unit, self.columns = "pairs", "data.source and data.target"
        self.class_names: list[str] = []
        self.sides = {"source": "source_", "target": "target_"}
        self.corpus = corpus
        self.cleaning: TextCleaning = corpus.cleaning
        self.aligned = "source_spans" in train.column_names
        texts = dict.fromkeys(self.sides, pa.string())
        spans = dict.fromkeys(("source_spans", "target_spans"), _PAIRS) if self.aligned else {}
        links = dict.fromkeys(("sure_links", "possible_links"), _PAIRS) if self.aligned else {}
        self.cleaned_schema = pa.schema(texts | spans)
        self.schema = pa.schema(texts | dict.fromkeys(("source_ids", "target_ids"), _IDS) | links)

    def clean(self, rows: dict[str, list[Any]]) -> Iterator[list[Any] | str]:
        spans = zip(rows["source_spans"], rows["target_spans"], strict=True) if self.aligned else repeat(())
        for source, target, known in zip(rows["source"], rows["target"], spans, strict=False):
            texts = self.cleaning.clean(source, target)
            yield texts if isinstance(texts, str) else [*texts, *known]

    def learn(self, train: Path) -> None:
        pass

    def more(self, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str) -> dict[str, Any]:
        if not self.aligned:
            return {}
        offsets = [
            [encoded.offsets for encoded in tokenizers[side].encode_batch(rows[side].to_pylist())]
            for side in self.sides
        ]
        spans = (rows[f"{side}_spans"].to_pylist() for side in self.sides)
        links = [links_between(*row) for row in zip(*offsets, *spans, strict=True)]
        return {"sure_links": [sure for sure, _ in links], "possible_links": [possible for _, possible in links]}

    def info(self) -> DataInfo:
        return DataInfo(
            format=FORMAT,
            source_language=self.corpus.source_language,
            target_language=self.corpus.target_language,
            bleu_tokenize=self.corpus.bleu_tokenize,
            joint=self.corpus.tokenizer.joint,
            has_alignments=self.aligned,
        )


class _Sentences:
    def __init__(self, corpus: LabelledCorpus, train: datasets.Dataset) -> None:
        self.unit, self.columns = "sentences", "data.text and data.label"
        self.cleaned_schema = pa.schema({"text": pa.string(), "label": pa.int32()})
        self.schema = pa.schema({"text": pa.string(), "label": pa.int32(), "ids": _IDS})
        self.sides = {"text": ""}
        self.corpus = corpus
        self.cleaning: TextCleaning = corpus.cleaning
        self._own_names = getattr(train.features["label"], "names", None)
        self._places: dict[Label, int] = {}  # of all labels, in the order of their first use

    def clean(self, rows: dict[str, list[Any]]) -> Iterator[list[Any] | str]:
        for text, raw_label in zip(rows["text"], rows["label"], strict=True):
            label = label_of(raw_label, self.cleaning.tidy)
            if label is None:
                yield "no_label"
                continue
            texts = self.cleaning.clean(text)
            yield texts if isinstance(texts, str) else [*texts, self._places.setdefault(label, len(self._places))]

    def learn(self, train: Path) -> None:
        self._labels = list(self._places)
        places = {place for _, rows in batches_of_file(train) for place in rows["label"].to_pylist()}
        self._classes = Classes([self._labels[place] for place in places], self.corpus.label_names, self._own_names)
        self.class_names = self._classes.names

    def more(self, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str) -> dict[str, Any]:
        return {"label": [self._classes.number(self._labels[place], split) for place in rows["label"].to_pylist()]}

    def info(self) -> LabelledInfo:
        return LabelledInfo(format=FORMAT, labels=self.class_names)


def links_between(
    source_offsets: Sequence[Span],
    target_offsets: Sequence[Span],
    source_spans: Sequence[Span],
    target_spans: Sequence[Span],
) -> tuple[list[Link], list[Link]]:
    """(sure, possible) links between the tokens of aligned fields; every sure one is possible too.

    Every token of a field is a possible link to every token of the same field on the other side;
    the link is sure where both are one token. A token belongs to each field that it has a character of.
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
    return [i for i, (start, end) in enumerate(offsets) if max(start, span[0]) < min(end, span[1])]


def _nothing_left(split: str, dropped: Counter[str], columns: str) -> str:
    if not dropped:
        return f"data: the {split} split has no rows at all; see data.splits for where they come from"
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
    return (
        f"data: nothing is left of the {split} split; {dropped.total()} rows were dropped ({reasons}); "
        f"see data.cleaning for the limits and {columns} for the columns"
    )
