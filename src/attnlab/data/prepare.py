"""From a corpus to the folder that training reads: clean, tokenise, encode, count, write.

The folder is a function of the corpus alone, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnlab.data.corpus import FAULT, PLACE, SPLITS, RawCorpus
from attnlab.data.padding import Ragged
from attnlab.data.row_kinds import RowKind, Tokenizers
from attnlab.data.rows import batches_of_file, list_array
from attnlab.data.statistics import DroppedRows, SplitCounter
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError, show
from attnlab.files import atomic_folder, write_json
from attnlab.progress import Progress

if TYPE_CHECKING:
    import datasets

ROWS_OF_A_BATCH = 1_000


def prepare(
    corpus: RawCorpus, rows: type[RowKind], folder: Path, progress: Progress | None = None
) -> None:
    """Write the prepared data of `corpus` to `folder`, whole or not at all.

    rows: the kind of its rows.

    Raises ExperimentError where a split has no row left, or where the labels cannot be learnt.
    """
    report = progress or (lambda *_: None)
    report("load", 0, 1)
    splits = corpus.load_checked()
    if corpus.limit is not None:
        for split, raw in splits.items():
            splits[split] = raw.select(range(min(len(raw), corpus.limit)))
    kind = rows(corpus, splits["train"])
    counters = {split: SplitCounter(kind.unit, list(kind.sides)) for split in SPLITS}

    with atomic_folder(folder) as temporary:
        # The tokenisers read all sentences before the first is encoded: cleaned ones stay in a
        # file, not in memory.
        cleaned = {split: temporary / f"{split}.cleaned" for split in SPLITS}
        for split in SPLITS:
            _clean(kind, splits[split], cleaned[split], counters[split].dropped, report)
            _check_rows_left(
                corpus, split, len(splits[split]), counters[split].dropped, kind.settings
            )

        report("tokenizer", 0, 1)
        kind.learn(cleaned["train"])
        learnt = kind.train_tokenizers(*(_texts(cleaned["train"], side) for side in kind.sides))
        tokenizers = dict(zip(kind.sides, learnt, strict=True))
        for side, prefix in kind.sides.items():
            tokenizers[side].save(temporary / f"{prefix}tokenizer.json")

        for split in SPLITS:
            left = len(splits[split]) - counters[split].dropped.total
            with pa.ipc.new_file(str(temporary / f"{split}.arrow"), kind.schema) as file:
                for start, batch in batches_of_file(cleaned[split]):
                    report(split, start, left)
                    columns = _encode(kind, batch, tokenizers, split, counters[split])
                    file.write_table(pa.table(columns, schema=kind.schema))
            report(split, left, left)
            _check_rows_left(
                corpus, split, len(splits[split]), counters[split].dropped, kind.settings
            )
            cleaned[split].unlink()

        sizes = {side: tokenizer.size for side, tokenizer in tokenizers.items()}
        counted = {split: counters[split].summary(kind.class_names) for split in SPLITS}
        stats = {"vocabulary": sizes, "splits": counted, "notes": list(corpus.notes)}
        write_json(temporary / "stats.json", stats)
        write_json(temporary / "data.json", asdict(kind.info()))


def _texts(cleaned: Path, column: str) -> Iterator[str]:
    """The texts of a side, read from the file of clean rows."""
    for _, rows in batches_of_file(cleaned):
        yield from rows[column].to_pylist()


def _clean(
    kind: RowKind,
    dataset: datasets.Dataset,
    path: Path,
    dropped: DroppedRows,
    report: Progress,
) -> None:
    """Write the clean rows to a file, each with its place."""
    schema = kind.cleaned_schema.append(pa.field(PLACE, pa.string()))
    with pa.ipc.new_file(str(path), schema) as file:
        for number, rows in enumerate(dataset.iter(batch_size=ROWS_OF_A_BATCH)):
            start = number * ROWS_OF_A_BATCH
            report("clean", start, len(dataset))
            sides = [rows[side] for side in kind.sides]
            count = len(sides[0])
            # A corpus may say where its rows stand, and which of them cannot be used.
            numbered = [f"row {start + i}" for i in range(1, count + 1)]
            places = rows.get(PLACE, numbered)
            faults = rows.get(FAULT, [None] * count)

            kept = []
            for i, clean in enumerate(kind.clean(rows)):
                if faults[i]:
                    dropped.add("not_text", places[i], faults[i])
                elif isinstance(clean, str):
                    content = " → ".join(show(side[i], 60) for side in sides)
                    dropped.add(clean, places[i], content)
                else:
                    kept.append((*clean, places[i]))
            file.write_table(_as_table(kept, schema))


def _as_table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows, of which there may be none, by column."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        arrays.append(pa.array(column, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _encode(
    kind: RowKind,
    rows: pa.RecordBatch,
    tokenizers: Tokenizers,
    split: str,
    counter: SplitCounter,
) -> dict[str, Any]:
    """The columns of the clean rows that are within the limits; others are counted as dropped."""
    ids = kind.encode(rows, tokenizers)
    lengths = [of_side.lengths for of_side in ids.values()]

    # A normaliser may leave nothing of a text that looked like one.
    kept = np.all([of_side > 0 for of_side in lengths], axis=0)
    _drop("empty", ~kept, rows, kind, counter.dropped)
    for reason, too_long in kind.cleaning.over_limit(lengths, split):
        _drop(reason, kept & too_long, rows, kind, counter.dropped)
        kept &= ~too_long

    numbers = np.flatnonzero(kept)
    rows = rows.take(pa.array(numbers))
    ids = {side: of_side.take(numbers) for side, of_side in ids.items()}
    more = kind.more(rows, tokenizers, split)
    unknown = {side: tokenizers[side].count_unknown(ids[side].values) for side in kind.sides}
    counter.add(ids, unknown, more.get("label", ()))
    if kind.written_side and split != "train":
        side = kind.written_side
        _count_rewritten(rows[side].to_pylist(), ids[side], tokenizers[side], counter)

    columns: dict[str, Any] = {}
    for side, prefix in kind.sides.items():
        columns[side] = rows[side]
        columns[f"{prefix}ids"] = list_array(ids[side])
    return columns | more


def _count_rewritten(
    texts: Sequence[str], ids: Ragged, tokenizer: Tokenizer, counter: SplitCounter
) -> None:
    """Count the texts without unknown tokens that their own tokens write otherwise.

    A tokenizer that lowercases does so: what a model writes can then never equal its reference.
    """
    for row, text in enumerate(texts):
        of_text = ids[row]
        if tokenizer.count_unknown(of_text):
            continue
        written = tokenizer.decode(of_text)
        if written != text:
            counter.add_rewritten(text, written)


def _drop(
    reason: str,
    which: NDArray[np.bool_],
    rows: pa.RecordBatch,
    kind: RowKind,
    dropped: DroppedRows,
) -> None:
    """Count the rows that are dropped for a reason; which: whether each row is."""
    for i in np.flatnonzero(which).tolist():
        place = rows[PLACE][i].as_py()
        texts = [show(rows[side][i].as_py(), 60) for side in kind.sides]
        dropped.add(reason, place, " → ".join(texts))


def _check_rows_left(
    corpus: RawCorpus, split: str, rows: int, dropped: DroppedRows, settings: str
) -> None:
    """Raise ExperimentError where a split has no row, or all its rows were dropped."""
    if rows == 0:
        raise ExperimentError(
            f"data: {type(corpus).__name__}.load returned no rows for the {split} split"
        )
    if dropped.total == rows:
        raise ExperimentError(
            f"data: nothing is left of the {split} split; {rows} rows were dropped "
            f"({dropped.shown()}); see data.splits for where rows come from, data.cleaning for the "
            f"limits and {settings} for the columns"
        )
