"""From a corpus to the folder that training reads: clean, tokenise, encode, count, write.

The folder is a function of the corpus alone, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from attnlab.data.corpus import SPLITS, Corpus
from attnlab.data.links import links_between
from attnlab.data.mapped_ids import list_array
from attnlab.data.prepared import FORMAT, DataInfo
from attnlab.data.rows import RowGroups, batches_of_file, batches_of_rows, none_left, write_json
from attnlab.data.stats import SplitCounter, kept_rows
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.files import atomic_folder

if TYPE_CHECKING:
    import datasets

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many rows are done, and how many there are."""

PLACES = "data.source and data.target"  # where the columns are chosen
_TEXTS = {"source": pa.string(), "target": pa.string()}
_IDS = {"source_ids": pa.list_(pa.int32()), "target_ids": pa.list_(pa.int32())}
_PAIRS = pa.list_(pa.list_(pa.int32()))
_SPANS = {"source_spans": _PAIRS, "target_spans": _PAIRS}
_LINKS = {"sure_links": _PAIRS, "possible_links": _PAIRS}


def prepare(corpus: Corpus, folder: Path, progress: Progress | None = None) -> None:
    """Writes the prepared data of `corpus` to `folder`, whole or not at all.

    Raises ExperimentError where a split has no pair left.
    """
    tell = progress or (lambda *_: None)
    tell("load", 0, 1)
    splits = corpus.load()
    aligned = "source_spans" in splits["train"].column_names
    with atomic_folder(folder) as temporary:
        counters = {split: SplitCounter() for split in SPLITS}
        # The tokenisers read all sentences before the first can be encoded: clean ones wait in a file, not in memory.
        cleaned = {split: temporary / f"{split}.cleaned" for split in SPLITS}
        for split in SPLITS:
            _clean(corpus, splits[split], aligned, cleaned[split], counters[split], tell)
            if counters[split].dropped.total() == len(splits[split]):
                raise ExperimentError(none_left(split, counters[split].dropped, PLACES))
        tell("tokenizer", 0, 1)
        source_tokenizer, target_tokenizer = corpus.tokenizer.train_pair(
            texts_of(cleaned["train"], "source"), texts_of(cleaned["train"], "target")
        )
        source_tokenizer.save(temporary / "source_tokenizer.json")
        target_tokenizer.save(temporary / "target_tokenizer.json")
        for split in SPLITS:
            encoder = _Encoder(corpus, source_tokenizer, target_tokenizer, split, aligned, counters[split])
            rows = len(splits[split]) - counters[split].dropped.total()
            encoder.write(cleaned[split], rows, temporary / f"{split}.arrow", tell)
            if counters[split].pairs == 0:
                raise ExperimentError(none_left(split, counters[split].dropped, PLACES))
            cleaned[split].unlink()
        _write_stats(temporary / "stats.json", counters, source_tokenizer, target_tokenizer)
        DataInfo(
            format=FORMAT,
            source_language=corpus.source_language,
            target_language=corpus.target_language,
            bleu_tokenize=corpus.bleu_tokenize,
            joint=corpus.tokenizer.joint,
            has_alignments=aligned,
        ).write(temporary / "data.json")


def texts_of(cleaned: Path, column: str) -> Iterator[str]:
    """The sentences of a file of clean rows."""
    for _, rows in batches_of_file(cleaned):
        yield from rows[column].to_pylist()


def _clean(
    corpus: Corpus, dataset: datasets.Dataset, aligned: bool, path: Path, counter: SplitCounter, tell: Progress
) -> None:
    """Writes the tidied pairs that can be encoded, and what is known of their alignment."""
    schema = pa.schema(_TEXTS | _SPANS if aligned else _TEXTS)
    with RowGroups(path, schema) as file:
        for start, rows in batches_of_rows(dataset):
            tell("clean", start, len(dataset))
            columns: dict[str, list[Any]] = {name: [] for name in schema.names}
            for i, (source, target) in enumerate(zip(rows["source"], rows["target"], strict=True)):
                pair = corpus.cleaning.pair(source, target)
                if isinstance(pair, str):
                    counter.drop(pair)
                    continue
                columns["source"].append(pair[0])
                columns["target"].append(pair[1])
                if aligned:
                    for name in _SPANS:
                        columns[name].append(rows[name][i])
            file.add(columns)


class _Encoder:
    """Encodes and writes one split, a thousand rows at a time."""

    def __init__(
        self, corpus: Corpus, source: Tokenizer, target: Tokenizer, split: str, aligned: bool, counter: SplitCounter
    ) -> None:
        self.cleaning, self.source, self.target, self.split = corpus.cleaning, source, target, split
        self.aligned, self.counter = aligned, counter

    def write(self, cleaned: Path, number: int, path: Path, tell: Progress) -> None:
        with RowGroups(path, pa.schema(_TEXTS | _IDS | _LINKS if self.aligned else _TEXTS | _IDS)) as file:
            for start, rows in batches_of_file(cleaned):
                tell(self.split, start, number)
                file.add(self._encode(rows))
        tell(self.split, number, number)

    def _encode(self, rows: pa.RecordBatch) -> dict[str, Any]:
        source = self.source.encode_rows(rows["source"].to_pylist())
        target = self.target.encode_rows(rows["target"].to_pylist())
        # A normaliser may leave nothing of a text that looked like one.
        empty = (source.lengths == 0) | (target.lengths == 0)
        limits = self.cleaning.over_limit(source.lengths, target.lengths, self.split)
        kept = kept_rows(self.counter.dropped, ("empty", empty), *limits)
        rows, source, target = rows.take(pa.array(kept)), source.take(kept), target.take(kept)
        self.counter.keep(source, target)
        columns = {name: rows[name] for name in _TEXTS}
        columns |= {"source_ids": list_array(source), "target_ids": list_array(target)}
        return columns | self._links(rows) if self.aligned else columns

    def _links(self, rows: pa.RecordBatch) -> dict[str, Any]:
        sources = self.source.encode_batch(rows["source"].to_pylist())
        targets = self.target.encode_batch(rows["target"].to_pylist())
        spans = (rows[name].to_pylist() for name in _SPANS)
        links = [
            links_between(source.offsets, target.offsets, source_spans, target_spans)
            for source, target, source_spans, target_spans in zip(sources, targets, *spans, strict=True)
        ]
        return {"sure_links": [sure for sure, _ in links], "possible_links": [possible for _, possible in links]}


def _write_stats(path: Path, counters: dict[str, SplitCounter], source: Tokenizer, target: Tokenizer) -> None:
    stats = {
        "vocabulary": {"source": source.size, "target": target.size},
        "splits": {split: counter.summary() for split, counter in counters.items()},
    }
    write_json(path, stats)
