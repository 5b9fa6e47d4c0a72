"""Tagged sentences: from raw rows to prepared data and batches.

Axes: B batch, S source length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS, Padding, SourceBatch
from attnlab.data.padding import pad_labelled
from attnlab.data.prepared import FORMAT, Info, MappedSplit, PreparedFolder
from attnlab.data.row_kinds import RowKind, Tokenizers
from attnlab.data.rows import MappedIds, open_rows
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError

NO_TAG = -100  # of <eos> and pads, as torch's losses ignore it

_IDS = pa.list_(pa.int32())


@dataclass(frozen=True)
class TagInfo(Info):
    """The content of `data.json`. tags: their names, by their numbers."""

    tags: list[str]


class TaggedSentences(RowKind):
    """Sentences with a tag a word; the tags are those of the training split, sorted."""

    unit = "sentences"
    sides = {"text": ""}  # noqa: RUF012
    source_side = "text"
    raw_columns = ("text", "tags")
    settings = "the corpus's text and tags"
    cleaned_schema = pa.schema({"text": pa.string(), "tags": pa.string()})
    schema = pa.schema({"text": pa.string(), "ids": _IDS, "tags": _IDS})

    def clean(self, rows: dict[str, list[Any]]) -> Iterator[list[Any] | str]:
        for text, tags in zip(rows["text"], rows["tags"], strict=True):
            cleaned = self.cleaning.clean(text, tags)
            if isinstance(cleaned, str):
                yield cleaned  # the reason to drop it
            elif len(cleaned[0].split()) != len(cleaned[1].split()):
                yield "other_number_of_tags"
            else:
                yield cleaned

    def learn(self, train: Path) -> None:
        known = {tag for row in open_rows(train)["tags"].to_pylist() for tag in row.split()}
        self.names = sorted(known)
        self.numbers = {name: number for number, name in enumerate(self.names)}

    def more(self, rows: pa.RecordBatch, tokenizers: Tokenizers, split: str) -> dict[str, Any]:
        tags = [row.split() for row in rows["tags"].to_pylist()]
        unseen = sorted({tag for row in tags for tag in row} - self.numbers.keys())
        if unseen:
            raise ExperimentError(
                f"data: the {split} split has the tag {unseen[0]!r}, which the training split has "
                "not, so that no model can learn it"
            )
        words = tokenizers["text"].encode_rows(rows["text"].to_pylist()).lengths
        for row, length in zip(tags, words.tolist(), strict=True):
            if len(row) != length:
                raise ExperimentError(
                    "data.tokenizer splits words, but each has one tag; choose "
                    "data/tokenizer=whitespace"
                )
        return {"tags": [[self.numbers[tag] for tag in row] for row in tags]}

    def info(self) -> TagInfo:
        return TagInfo(format=FORMAT, tags=self.names)


@dataclass(frozen=True)
class TaggedBatch(SourceBatch):
    """Tagged sentences of one padded batch."""

    tags: Tensor  # (B, S) long, NO_TAG at <eos> and pads


class TaggedSplit(MappedSplit):
    """The sentences of one split; ids come without `<eos>`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ids = MappedIds(self._table["ids"])
        self.tags = MappedIds(self._table["tags"])
        self.source_lengths = self.ids.lengths
        self.target_lengths = np.zeros_like(self.source_lengths)  # nothing is written

    def batch(self, rows: NDArray[np.int64], padding: Padding) -> TaggedBatch:
        return pad_tagged(self.ids.take(rows), self.tags.take(rows).values, rows, padding)

    def source_text(self, row: int) -> str:
        return self._table["text"][row].as_py()


def pad_tagged(ids: Any, tags: Any, rows: NDArray[np.int64], padding: Padding) -> TaggedBatch:
    """A padded batch. tags: of all words, one sentence after the other."""
    padded = pad_labelled(ids, np.zeros(len(ids), dtype=np.int64), rows, padding)
    is_word = padded.source_mask & (padded.source != EOS)
    numbers = torch.full_like(padded.source, NO_TAG)
    numbers[is_word] = torch.from_numpy(np.asarray(tags, dtype=np.int64))
    return TaggedBatch(padded.source, padded.source_mask, padded.rows, numbers)


class TaggedData(PreparedFolder[TaggedSplit, TagInfo]):
    """Prepared tagged sentences."""

    tokenizer_files = ("tokenizer.json",)
    unit = "sentences"
    split_type, info_type = TaggedSplit, TagInfo

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "tokenizer.json")
