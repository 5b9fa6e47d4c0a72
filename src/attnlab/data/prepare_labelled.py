"""From a labelled corpus to the folder that training reads: clean, tokenise, encode, number the classes, write.

The folder is a function of the corpus alone, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from attnlab.data.classes import Classes, Label, label_of
from attnlab.data.corpus import SPLITS
from attnlab.data.labelled import LabelledCorpus
from attnlab.data.labelled_data import FORMAT, LabelledInfo
from attnlab.data.mapped_ids import list_array
from attnlab.data.prepare import Progress, texts_of
from attnlab.data.rows import RowGroups, batches_of_file, batches_of_rows, none_left, write_json
from attnlab.data.stats import LabelledCounter, kept_rows
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.files import atomic_folder

if TYPE_CHECKING:
    import datasets

PLACES = "data.text and data.label"  # where the columns are chosen
_CLEANED = {"text": pa.string(), "label": pa.int32()}
_SCHEMA = pa.schema(_CLEANED | {"ids": pa.list_(pa.int32())})


def prepare_labelled(corpus: LabelledCorpus, folder: Path, progress: Progress | None = None) -> None:
    """Writes the prepared data of `corpus` to `folder`, whole or not at all.

    Raises ExperimentError where a split has no sentence left, or where the labels cannot be learnt.
    """
    tell = progress or (lambda *_: None)
    tell("load", 0, 1)
    splits = corpus.load()
    with atomic_folder(folder) as temporary:
        # As in `prepare`: clean sentences wait in a file until the tokeniser and the classes are known.
        cleaned = {}
        for split in SPLITS:
            cleaned[split] = _Cleaned(corpus, splits[split], temporary / f"{split}.cleaned", tell)
            if not cleaned[split].rows:
                raise ExperimentError(none_left(split, cleaned[split].dropped, PLACES))
        tell("tokenizer", 0, 1)
        own_names = getattr(splits["train"].features["label"], "names", None)
        classes = Classes(cleaned["train"].labels, corpus.label_names, own_names)
        tokenizer = corpus.tokenizer.train(texts_of(cleaned["train"].path, "text"))
        tokenizer.save(temporary / "tokenizer.json")
        counters = {}
        for split in SPLITS:
            counters[split] = LabelledCounter(classes.names, cleaned[split].dropped)
            path = temporary / f"{split}.arrow"
            _encode(corpus, classes, tokenizer, split, cleaned[split], path, counters[split], tell)
            if counters[split].sentences == 0:
                raise ExperimentError(none_left(split, counters[split].dropped, PLACES))
            cleaned[split].path.unlink()
        stats = {
            "vocabulary": {"text": tokenizer.size},
            "splits": {split: counter.summary() for split, counter in counters.items()},
        }
        write_json(temporary / "stats.json", stats)
        LabelledInfo(format=FORMAT, labels=classes.names).write(temporary / "data.json")


class _Cleaned:
    """The tidied sentences of a split that have a label, in a file.

    path, rows: `text`, and `label` as a place in `labels`, which has all labels in the order of their first use.
    """

    def __init__(self, corpus: LabelledCorpus, dataset: datasets.Dataset, path: Path, tell: Progress) -> None:
        self.path = path
        self.dropped: Counter[str] = Counter()
        places: dict[Label, int] = {}
        with RowGroups(path, pa.schema(_CLEANED)) as file:
            for start, rows in batches_of_rows(dataset):
                tell("clean", start, len(dataset))
                columns: dict[str, list[Any]] = {"text": [], "label": []}
                for raw_text, raw_label in zip(rows["text"], rows["label"], strict=True):
                    label = label_of(raw_label, corpus.cleaning.tidy)
                    text, reason = corpus.cleaning.sentence(raw_text)
                    if label is None:
                        self.dropped["no_label"] += 1
                    elif reason is not None:
                        self.dropped[reason] += 1
                    else:
                        columns["text"].append(text)
                        columns["label"].append(places.setdefault(label, len(places)))
                file.add(columns)
        self.rows, self.labels = len(dataset) - self.dropped.total(), list(places)


def _encode(
    corpus: LabelledCorpus,
    classes: Classes,
    tokenizer: Tokenizer,
    split: str,
    cleaned: _Cleaned,
    path: Path,
    counter: LabelledCounter,
    tell: Progress,
) -> None:
    numbers = np.array([classes.number(label, split) for label in cleaned.labels], dtype=np.int32)
    with RowGroups(path, _SCHEMA) as file:
        for start, rows in batches_of_file(cleaned.path):
            tell(split, start, cleaned.rows)
            ids = tokenizer.encode_rows(rows["text"].to_pylist())
            # A normaliser may leave nothing of a text that looked like one.
            empty = ("empty", ids.lengths == 0)
            kept = kept_rows(counter.dropped, empty, *corpus.cleaning.over_limit(ids.lengths, split))
            labels = numbers[rows["label"].to_numpy()][kept]
            counter.keep(ids.take(kept), labels)
            texts = rows["text"].take(pa.array(kept))
            file.add({"text": texts, "label": pa.array(labels), "ids": list_array(ids.take(kept))})
    tell(split, cleaned.rows, cleaned.rows)
