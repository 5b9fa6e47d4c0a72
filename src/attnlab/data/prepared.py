"""The prepared data of an experiment, as `prepare` wrote it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnlab.batch import Batch, Padding
from attnlab.data.corpus import SPLITS, BleuTokenize
from attnlab.data.mapped_ids import MappedIds
from attnlab.data.padding import pad_pairs
from attnlab.data.prepared_folder import PreparedFolder, incomplete, longest_sources, unreadable
from attnlab.data.rows import open_rows, write_json
from attnlab.data.tokenizer import Tokenizer

FORMAT = 2
FILES = (
    *(f"{split}.arrow" for split in SPLITS),
    "data.json",
    "source_tokenizer.json",
    "stats.json",
    "target_tokenizer.json",
)


@dataclass(frozen=True)
class DataInfo:
    """How the folder is to be read; `data.json` holds it.

    joint: source and target share one vocabulary.
    """

    format: int
    source_language: str | None
    target_language: str | None
    bleu_tokenize: BleuTokenize
    joint: bool
    has_alignments: bool

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))


class PreparedSplit:
    """The pairs of one split. Ids come without `<bos>` and `<eos>`.

    Links are arrays (n, 2) of [target position, source position]; they are empty where the corpus has none.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._table = path, open_rows(path)
        self.source = MappedIds(self._table["source_ids"])
        self.target = MappedIds(self._table["target_ids"])
        self.has_alignments = "sure_links" in self._table.column_names

    def __len__(self) -> int:
        return len(self.source)

    def batch(self, rows: NDArray[np.int64], padding: Padding) -> Batch:
        """The padded batch of these rows."""
        return pad_pairs(self.source.take(rows), self.target.take(rows), rows, padding)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        return self.source.lengths

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        return self.target.lengths

    def source_ids(self, row: int) -> NDArray[np.int32]:
        return self.source[row]

    def target_ids(self, row: int) -> NDArray[np.int32]:
        return self.target[row]

    def source_text(self, row: int) -> str:
        return self._table["source"][row].as_py()

    def target_text(self, row: int) -> str:
        return self._table["target"][row].as_py()

    def sure_links(self, row: int) -> NDArray[np.int64]:
        return self._links("sure_links", row)

    def possible_links(self, row: int) -> NDArray[np.int64]:
        return self._links("possible_links", row)

    def _links(self, name: str, row: int) -> NDArray[np.int64]:
        links = self._table[name][row].as_py() if self.has_alignments else []
        return np.array(links, dtype=np.int64).reshape(-1, 2)

    def __reduce__(self) -> tuple[type[PreparedSplit], tuple[Path]]:
        return type(self), (self._path,)  # another process maps the file too


class PreparedData:
    """A folder written by `attnlab.data.prepare.prepare`. Splits are opened when first asked for, and are mapped.

    sizes: pairs of each split.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._read = PreparedFolder(self.folder, FILES, FORMAT)
        self.stats = self._read.stats
        try:
            self.info = self._read.facts_as(DataInfo)
            self.sizes = {split: int(self.stats["splits"][split]["pairs"]) for split in SPLITS}
            longest_sources(self.stats, "source")
        except (KeyError, TypeError, ValueError) as error:
            raise incomplete(self.folder, error) from error
        self._splits: dict[str, PreparedSplit] = {}

    def split(self, name: str) -> PreparedSplit:
        """name: `train`, `validation` or `test`."""
        file = self._read.rows_file(name)
        if name not in self._splits:
            try:
                self._splits[name] = PreparedSplit(file)
            except (pa.ArrowException, OSError, KeyError, TypeError) as error:
                raise unreadable(file, error) from error
        return self._splits[name]

    @cached_property
    def source_tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "source_tokenizer.json")

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "target_tokenizer.json")

    @property
    def digest(self) -> str:
        """See `PreparedFolder.digest`."""
        return self._read.digest
