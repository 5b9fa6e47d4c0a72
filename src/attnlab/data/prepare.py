"""From a corpus to the folder that training reads: clean, tokenise, encode, count, write.

The folder is a function of the corpus alone, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnlab.batch import UNK
from attnlab.data.corpus import SPLITS, Corpus
from attnlab.data.hub import LabelledCorpus
from attnlab.data.padding import Ragged
from attnlab.data.row_kinds import Pairs, Sentences, Tokenizers
from attnlab.data.rows import batches_of_file, list_array
from attnlab.errors import ExperimentError
from attnlab.files import atomic_folder, write_json
from attnlab.progress import Progress

if TYPE_CHECKING:
    import datasets

ROWS_OF_A_BATCH = 1_000


def prepare(corpus: Corpus | LabelledCorpus, folder: Path, progress: Progress | None = None) -> None:
    """Writes the prepared data of `corpus` to `folder`, whole or not at all.

    Raises ExperimentError where a split has no row left, or where the labels cannot be learnt.
    """
    report = progress or (lambda *_: None)
    report("load", 0, 1)
    splits = corpus.load()
    if corpus.limit is not None:
        splits = {split: rows.select(range(min(len(rows), corpus.limit))) for split, rows in splits.items()}
    rows = splits["train"]
    kind = Pairs(corpus, rows) if isinstance(corpus, Corpus) else Sentences(corpus, rows)
    counters = {split: SplitCounter(kind.unit, list(kind.sides)) for split in SPLITS}
    with atomic_folder(folder) as temporary:
        # The tokenisers read all sentences before the first is encoded: cleaned ones stay in a file, not in memory.
        cleaned = {split: temporary / f"{split}.cleaned" for split in SPLITS}
        for split in SPLITS:
            _clean(kind, splits[split], cleaned[split], counters[split].dropped, report)
            _check_rows_left(split, len(splits[split]), counters[split].dropped, kind.columns)
        report("tokenizer", 0, 1)
        kind.learn(cleaned["train"])
        train = corpus.train_tokenizers if isinstance(corpus, Corpus) else corpus.tokenizer.train_sides
        learnt = train(*(_texts(cleaned["train"], side) for side in kind.sides))
        tokenizers = dict(zip(kind.sides, learnt, strict=True))
        for side, prefix in kind.sides.items():
            tokenizers[side].save(temporary / f"{prefix}tokenizer.json")
        for split in SPLITS:
            rows = len(splits[split]) - counters[split].dropped.total()
            with pa.ipc.new_file(str(temporary / f"{split}.arrow"), kind.schema) as file:
                for start, batch in batches_of_file(cleaned[split]):
                    report(split, start, rows)
                    columns = _encode(kind, batch, tokenizers, split, counters[split])
                    file.write_table(pa.table(columns, schema=kind.schema))
            report(split, rows, rows)
            _check_rows_left(split, len(splits[split]), counters[split].dropped, kind.columns)
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


def _clean(
    kind: Pairs | Sentences, dataset: datasets.Dataset, path: Path, dropped: Counter[str], report: Progress
) -> None:
    schema = kind.cleaned_schema
    with pa.ipc.new_file(str(path), schema) as file:
        for number, rows in enumerate(dataset.iter(batch_size=ROWS_OF_A_BATCH)):
            report("clean", number * ROWS_OF_A_BATCH, len(dataset))
            cleaned = list(kind.clean(rows))
            dropped.update(row for row in cleaned if isinstance(row, str))
            kept = [dict(zip(schema.names, row, strict=True)) for row in cleaned if not isinstance(row, str)]
            file.write_table(pa.Table.from_pylist(kept, schema=schema))


def _encode(
    kind: Pairs | Sentences, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str, counter: SplitCounter
) -> dict[str, Any]:
    """The columns of the rows that are within the limits."""
    ids = {side: tokenizers[side].encode_rows(rows[side].to_pylist()) for side in kind.sides}
    lengths = [each.lengths for each in ids.values()]
    # A normaliser may leave nothing of a text that looked like one.
    kept = np.all([each > 0 for each in lengths], axis=0)
    counter.drop("empty", ~kept)
    for reason, too_long in kind.cleaning.over_limit(lengths, split):
        counter.drop(reason, kept & too_long)
        kept &= ~too_long
    numbers = np.flatnonzero(kept)
    rows, ids = rows.take(pa.array(numbers)), {side: each.take(numbers) for side, each in ids.items()}
    more = kind.more(rows, tokenizers, split)
    counter.add(ids, more.get("label", ()))
    columns = {side: rows[side] for side in kind.sides}
    return columns | {f"{kind.sides[side]}ids": list_array(each) for side, each in ids.items()} | more


def _check_rows_left(split: str, rows: int, dropped: Counter[str], columns: str) -> None:
    if dropped.total() == rows:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
        raise ExperimentError(
            f"data: nothing is left of the {split} split; {rows} rows were dropped ({reasons}); see data.splits for "
            f"where rows come from, data.cleaning for the limits and {columns} for the columns"
        )


class SplitCounter:
    """Counts the rows of a split, batch by batch; it grows with the number of different lengths, not of rows.

    unit: the name of the rows, `pairs` or `sentences`.
    dropped: the number of dropped rows, by reason.
    """

    def __init__(self, unit: str, sides: Sequence[str]) -> None:
        self.dropped: Counter[str] = Counter()
        self._unit, self._rows, self._labels, self._unknown = unit, 0, Counter[int](), Counter[str]()
        self._lengths: dict[str, Counter[int]] = {side: Counter() for side in sides}

    def drop(self, reason: str, rows: NDArray[np.bool_]) -> None:
        """rows: whether each is dropped."""
        if rows.any():
            self.dropped[reason] += int(rows.sum())

    def add(self, ids: Mapping[str, Ragged], labels: Sequence[int] = ()) -> None:
        """ids: of the kept rows, by side. labels: numbers of their classes, where they have some."""
        self._rows += len(next(iter(ids.values())))
        self._labels.update(labels)
        for side, lengths in self._lengths.items():
            lengths.update(ids[side].lengths.tolist())
            self._unknown[side] += int(np.count_nonzero(ids[side].values == UNK))

    def summary(self, class_names: Sequence[str] = ()) -> dict[str, Any]:
        """class_names: by their numbers."""
        labels = {name: self._labels[number] for number, name in enumerate(class_names)}
        return {
            "rows": self._rows + self.dropped.total(),
            self._unit: self._rows,
            "dropped": dict(self.dropped),
            **({"labels": labels} if labels else {}),
            **{side: self._summary_of_side(side) for side in self._lengths},
        }

    def _summary_of_side(self, side: str) -> dict[str, Any]:
        """Lengths are in tokens, `<eos>` not counted; the histogram is a list of [length, sentences]."""
        histogram = sorted(self._lengths[side].items())
        lengths, counts = np.array(histogram).T
        tokens = int((lengths * counts).sum())
        reached = np.cumsum(counts) / counts.sum()
        return {
            "tokens": tokens,
            "mean_length": round(tokens / int(counts.sum()), 4),
            "p50_length": int(lengths[np.searchsorted(reached, 0.50)]),
            "p95_length": int(lengths[np.searchsorted(reached, 0.95)]),
            "max_length": int(lengths[-1]),
            "unknown_tokens": self._unknown[side],
            "unknown_rate": round(self._unknown[side] / tokens, 6),
            "length_histogram": [list(each) for each in histogram],
        }
