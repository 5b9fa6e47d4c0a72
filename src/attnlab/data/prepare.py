"""From a corpus to the folder that training reads: clean, tokenise, encode, count, write.

The folder is a function of the corpus alone, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from attnlab.composition.atomic import atomic_folder
from attnlab.composition.error import ExperimentError
from attnlab.data.corpus import SPLITS, Corpus
from attnlab.data.links import links_between
from attnlab.data.prepared import FORMAT, DataInfo
from attnlab.data.rows import RowGroups, batches_of_rows, none_left, write_json
from attnlab.data.stats import SplitCounter
from attnlab.data.tokenizer import Encoded, Tokenizer

if TYPE_CHECKING:
    import datasets

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many rows are done, and how many there are."""

PLACES = "data.source and data.target"  # where the columns are chosen
_LINKS = pa.list_(pa.list_(pa.int32()))


def prepare(corpus: Corpus, folder: Path, progress: Progress | None = None) -> None:
    """Writes the prepared data of `corpus` to `folder`, whole or not at all.

    Raises ExperimentError where a split has no pair left.
    """
    tell = progress or (lambda *_: None)
    tell("load", 0, 1)
    splits = corpus.load()
    aligned = "source_spans" in splits["train"].column_names
    for split in SPLITS:
        if not any(True for _ in _kept(corpus, splits[split])):
            raise ExperimentError(none_left(split, _dropped(corpus, splits[split]), PLACES))
    tell("tokenizer", 0, 1)
    source_tokenizer, target_tokenizer = corpus.tokenizer.train_pair(
        (source for source, _ in _kept(corpus, splits["train"])),
        (target for _, target in _kept(corpus, splits["train"])),
    )
    with atomic_folder(folder) as temporary:
        source_tokenizer.save(temporary / "source_tokenizer.json")
        target_tokenizer.save(temporary / "target_tokenizer.json")
        counters = {}
        for split in SPLITS:
            path = temporary / f"{split}.parquet"
            encoder = _Encoder(corpus, source_tokenizer, target_tokenizer, split, aligned)
            counters[split] = encoder.write(splits[split], path, tell)
            if counters[split].pairs == 0:
                raise ExperimentError(none_left(split, counters[split].dropped, PLACES))
        _write_stats(temporary / "stats.json", counters, source_tokenizer, target_tokenizer)
        DataInfo(
            format=FORMAT,
            source_language=corpus.source_language,
            target_language=corpus.target_language,
            bleu_tokenize=corpus.bleu_tokenize,
            joint=corpus.tokenizer.joint,
            has_alignments=aligned,
        ).write(temporary / "data.json")


class _Encoder:
    """Cleans, encodes and writes one split, a thousand rows at a time."""

    def __init__(self, corpus: Corpus, source: Tokenizer, target: Tokenizer, split: str, aligned: bool) -> None:
        self.corpus, self.source, self.target, self.split, self.aligned = (
            corpus,
            source,
            target,
            split,
            aligned,
        )
        columns = {
            "source": pa.string(),
            "target": pa.string(),
            "source_ids": pa.list_(pa.int32()),
            "target_ids": pa.list_(pa.int32()),
        }
        if aligned:
            columns |= {"sure_links": _LINKS, "possible_links": _LINKS}
        self.schema = pa.schema(columns)

    def write(self, dataset: datasets.Dataset, path: Path, tell: Progress) -> SplitCounter:
        counter = SplitCounter()
        with RowGroups(path, self.schema) as file:
            for start, rows in batches_of_rows(dataset):
                tell(self.split, start, len(dataset))
                file.add(self._encode(rows, counter))
        tell(self.split, len(dataset), len(dataset))
        return counter

    def _encode(self, rows: dict[str, list[Any]], counter: SplitCounter) -> dict[str, list[Any]]:
        kept: list[tuple[int, str, str]] = []
        for i, (source, target) in enumerate(zip(rows["source"], rows["target"], strict=True)):
            pair = self.corpus.cleaning.pair(source, target)
            if isinstance(pair, str):
                counter.drop(pair)
            else:
                kept.append((i, *pair))
        sources = self._encoded(self.source, [source for _, source, _ in kept])
        targets = self._encoded(self.target, [target for _, _, target in kept])
        columns: dict[str, list[Any]] = {name: [] for name in self.schema.names}
        for (i, source, target), source_side, target_side in zip(kept, sources, targets, strict=True):
            broken = self.corpus.cleaning.over_limit(len(source_side.ids), len(target_side.ids), self.split)
            if not (source_side.ids and target_side.ids):
                broken = "empty"  # a normaliser may leave nothing of a text that looked like one
            if broken is not None:
                counter.drop(broken)
                continue
            counter.keep(source_side.ids, target_side.ids)
            columns["source"].append(source)
            columns["target"].append(target)
            columns["source_ids"].append(source_side.ids)
            columns["target_ids"].append(target_side.ids)
            if self.aligned:
                sure, possible = links_between(
                    source_side.offsets, target_side.offsets, rows["source_spans"][i], rows["target_spans"][i]
                )
                columns["sure_links"].append(sure)
                columns["possible_links"].append(possible)
        return columns

    def _encoded(self, tokenizer: Tokenizer, texts: list[str]) -> list[Encoded]:
        if self.aligned:
            return tokenizer.encode_batch(texts)
        return [Encoded(ids, []) for ids in tokenizer.encode_ids(texts)]


def _kept(corpus: Corpus, dataset: datasets.Dataset) -> Iterator[tuple[str, str]]:
    for _, rows in batches_of_rows(dataset):
        for source, target in zip(rows["source"], rows["target"], strict=True):
            pair = corpus.cleaning.pair(source, target)
            if not isinstance(pair, str):
                yield pair


def _dropped(corpus: Corpus, dataset: datasets.Dataset) -> Counter[str]:
    return Counter(
        pair
        for _, rows in batches_of_rows(dataset)
        for source, target in zip(rows["source"], rows["target"], strict=True)
        if isinstance(pair := corpus.cleaning.pair(source, target), str)
    )


def _write_stats(path: Path, counters: dict[str, SplitCounter], source: Tokenizer, target: Tokenizer) -> None:
    stats = {
        "vocabulary": {"source": source.size, "target": target.size},
        "splits": {split: counter.summary() for split, counter in counters.items()},
    }
    write_json(path, stats)
