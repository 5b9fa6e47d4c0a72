"""From a labelled corpus to the folder that training reads: clean, tokenise, encode, number the classes, write.

The folder is a function of the corpus alone, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from attnlab.composition.atomic import atomic_folder
from attnlab.composition.error import ExperimentError
from attnlab.data.classes import Classes, Label, label_of
from attnlab.data.corpus import SPLITS
from attnlab.data.labelled import LabelledCorpus
from attnlab.data.labelled_data import FORMAT, LabelledInfo
from attnlab.data.prepare import Progress
from attnlab.data.rows import RowGroups, batches_of_rows, none_left, write_json
from attnlab.data.stats import LabelledCounter
from attnlab.data.tokenizer import Tokenizer

if TYPE_CHECKING:
    import datasets

PLACES = "data.text and data.label"  # where the columns are chosen
_SCHEMA = pa.schema({"text": pa.string(), "label": pa.int32(), "ids": pa.list_(pa.int32())})


def prepare_labelled(corpus: LabelledCorpus, folder: Path, progress: Progress | None = None) -> None:
    """Writes the prepared data of `corpus` to `folder`, whole or not at all.

    Raises ExperimentError where a split has no sentence left, or where the labels cannot be learnt.
    """
    tell = progress or (lambda *_: None)
    tell("load", 0, 1)
    splits = corpus.load()
    for split in SPLITS:
        if not any(reason is None for _, _, reason in _cleaned(corpus, splits[split])):
            dropped = Counter(reason for _, _, reason in _cleaned(corpus, splits[split]) if reason is not None)
            raise ExperimentError(none_left(split, dropped, PLACES))
    tell("tokenizer", 0, 1)
    labels = {label for _, label, reason in _cleaned(corpus, splits["train"]) if reason is None}
    classes = Classes(labels, corpus.label_names, getattr(splits["train"].features["label"], "names", None))
    tokenizer = corpus.tokenizer.train(text for text, _, reason in _cleaned(corpus, splits["train"]) if reason is None)
    with atomic_folder(folder) as temporary:
        tokenizer.save(temporary / "tokenizer.json")
        counters = {}
        for split in SPLITS:
            path = temporary / f"{split}.parquet"
            counters[split] = _write(corpus, classes, tokenizer, split, splits[split], path, tell)
            if counters[split].sentences == 0:
                raise ExperimentError(none_left(split, counters[split].dropped, PLACES))
        stats = {
            "vocabulary": {"text": tokenizer.size},
            "splits": {split: counter.summary() for split, counter in counters.items()},
        }
        write_json(temporary / "stats.json", stats)
        LabelledInfo(format=FORMAT, labels=classes.names).write(temporary / "data.json")


def _write(
    corpus: LabelledCorpus,
    classes: Classes,
    tokenizer: Tokenizer,
    split: str,
    dataset: datasets.Dataset,
    path: Path,
    tell: Progress,
) -> LabelledCounter:
    counter = LabelledCounter(classes.names)
    with RowGroups(path, _SCHEMA) as file:
        for start, rows in batches_of_rows(dataset):
            tell(split, start, len(dataset))
            kept: list[tuple[str, int]] = []
            for text, label, reason in _cleaned_rows(corpus, rows):
                if reason is None:
                    kept.append((text, classes.number(label, split)))
                else:
                    counter.drop(reason)
            columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
            encoded = tokenizer.encode_ids([text for text, _ in kept])
            for (text, number), ids in zip(kept, encoded, strict=True):
                # A normaliser may leave nothing of a text that looked like one.
                broken = corpus.cleaning.over_limit(len(ids), split) if ids else "empty"
                if broken is not None:
                    counter.drop(broken)
                    continue
                counter.keep(ids, classes.names[number])
                columns["text"].append(text)
                columns["label"].append(number)
                columns["ids"].append(ids)
            file.add(columns)
    tell(split, len(dataset), len(dataset))
    return counter


def _cleaned(corpus: LabelledCorpus, dataset: datasets.Dataset) -> Iterator[tuple[str, Label, str | None]]:
    for _, rows in batches_of_rows(dataset):
        yield from _cleaned_rows(corpus, rows)


def _cleaned_rows(corpus: LabelledCorpus, rows: dict[str, list[Any]]) -> Iterator[tuple[str, Label, str | None]]:
    """(text, label, None) of each row, or ("", "", the reason why it is dropped)."""
    for raw_text, raw_label in zip(rows["text"], rows["label"], strict=True):
        label = label_of(raw_label, corpus.cleaning.tidy)
        text, reason = corpus.cleaning.sentence(raw_text)
        if label is None:
            yield "", "", "no_label"
        elif text is None:
            yield "", "", reason
        else:
            yield text, label, None
