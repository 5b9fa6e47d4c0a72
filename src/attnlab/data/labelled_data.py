"""Prepared labelled sentences, as `prepare_labelled` wrote them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import TypeAdapter

from attnlab.batch import LabelledBatch, Padding
from attnlab.data.corpus import SPLITS
from attnlab.data.mapped_ids import MappedIds
from attnlab.data.padding import pad_labelled
from attnlab.data.prepared_folder import PreparedFolder, first_fault, incomplete, longest_sources, unreadable
from attnlab.data.rows import open_rows, write_json
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.files import check_regular

FORMAT = 2
FILES = (*(f"{split}.arrow" for split in SPLITS), "data.json", "stats.json", "tokenizer.json")


@dataclass(frozen=True)
class LabelledInfo:
    """How the folder is to be read; `data.json` holds it. labels: the names of the classes, by their numbers."""

    format: int
    labels: list[str]

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))


def read_labels(path: Path) -> list[str]:
    """The names of the classes from a `data.json`; raises ExperimentError where it does not say them."""
    try:
        check_regular(path)
        return TypeAdapter(LabelledInfo).validate_json(path.read_text(encoding="utf-8"), strict=True).labels
    except (OSError, ValueError) as error:
        reason = first_fault(error)
        raise ExperimentError(f"{path} does not name the classes ({reason}); take a whole folder") from error


class LabelledSplit:
    """The sentences of one split. Ids come without `<eos>`; labels are the numbers of the classes, (rows,)."""

    def __init__(self, path: Path) -> None:
        self._path, self._table = path, open_rows(path)
        self.ids = MappedIds(self._table["ids"])
        self.labels: NDArray[np.int64] = self._table["label"].to_numpy().astype(np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: NDArray[np.int64], padding: Padding) -> LabelledBatch:
        """The padded batch of these rows."""
        return pad_labelled(self.ids.take(rows), self.labels[rows], rows, padding)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        return self.ids.lengths

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """All zero: a label takes no place in a batch that is bounded by tokens."""
        return np.zeros(len(self), dtype=np.int32)

    def text(self, row: int) -> str:
        return self._table["text"][row].as_py()

    def __reduce__(self) -> tuple[type[LabelledSplit], tuple[Path]]:
        return type(self), (self._path,)  # another process maps the file too


class LabelledData:
    """A folder written by `prepare_labelled`. Splits are opened when first asked for, and are mapped.

    labels: the names of the classes, by their numbers.
    sizes: sentences of each split.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._read = PreparedFolder(self.folder, FILES, FORMAT)
        self.stats = self._read.stats
        try:
            self.labels = self._read.facts_as(LabelledInfo).labels
            self.sizes = {split: int(self.stats["splits"][split]["sentences"]) for split in SPLITS}
            longest_sources(self.stats, "text")
        except (KeyError, TypeError, ValueError) as error:
            raise incomplete(self.folder, error) from error
        self._splits: dict[str, LabelledSplit] = {}

    def split(self, name: str) -> LabelledSplit:
        """name: `train`, `validation` or `test`."""
        file = self._read.rows_file(name)
        if name not in self._splits:
            try:
                self._splits[name] = LabelledSplit(file)
            except (pa.ArrowException, OSError, KeyError, TypeError) as error:
                raise unreadable(file, error) from error
        return self._splits[name]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "tokenizer.json")

    @property
    def digest(self) -> str:
        """See `PreparedFolder.digest`."""
        return self._read.digest
