"""Prepared data: the folder that `prepare` wrote, its splits and its tokenisers."""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnlab.batch import Batch, LabelledBatch, Padding
from attnlab.data.corpus import SPLITS, BleuTokenize, RougeUnit
from attnlab.data.padding import pad_labelled, pad_pairs
from attnlab.data.rows import MappedIds, open_rows
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.files import read_own_record

FORMAT = 2
_REMEDY = "run the prepare stage again"
# The files of every folder; those of its tokenizers come beside them.
_SHARED = (*(f"{split}.arrow" for split in SPLITS), "data.json", "stats.json")


@dataclass(frozen=True)
class Info:
    """What every `data.json` holds.

    format: of the folder; another version of attnlab may write another one.
    """

    format: int


@dataclass(frozen=True)
class DataInfo(Info):
    """The content of `data.json` for sentence pairs.

    joint: source and target share one vocabulary.
    """

    source_language: str | None
    target_language: str | None
    bleu_tokenize: BleuTokenize
    joint: bool
    has_alignments: bool
    rouge: RougeUnit | None = None


@dataclass(frozen=True)
class LabelledInfo(Info):
    """The content of `data.json` for labelled sentences.

    labels: the names of the classes, by their numbers.
    """

    labels: list[str]


class MappedSplit(ABC):
    """A split whose file is memory-mapped.

    When it is sent to another process, that process maps the file, too.

    source_lengths, target_lengths: (rows,) in tokens, from which batches are made.
    """

    source_lengths: NDArray[np.int32]
    target_lengths: NDArray[np.int32]

    def __init__(self, path: Path) -> None:
        self._path = path
        self._table = open_rows(path)

    @abstractmethod
    def batch(self, rows: NDArray[np.int64], padding: Padding) -> Any:
        """The padded batch of these rows."""

    @abstractmethod
    def source_text(self, row: int) -> str:
        """What the encoder reads of a row."""

    def __len__(self) -> int:
        return self._table.num_rows

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        return type(self), (self._path,)


_SHORT = 12  # tokens of an example
_SEEN = 100  # rows among which an example is looked for


def short_text(split: MappedSplit) -> str:
    """The first short source of a split, or else its shortest one; "" for an empty split.

    Of a long split only the first rows count.
    """
    lengths = split.source_lengths[:_SEEN]
    if len(lengths) == 0:
        return ""
    is_short = (lengths > 1) & (lengths <= _SHORT)
    row = is_short.argmax() if is_short.any() else lengths.argmin()
    return split.source_text(int(row))


class PreparedSplit(MappedSplit):
    """The pairs of one split. Ids come without `<bos>` and `<eos>`.

    source, target: the ids of each row.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.source = MappedIds(self._table["source_ids"])
        self.target = MappedIds(self._table["target_ids"])
        self.source_lengths = self.source.lengths
        self.target_lengths = self.target.lengths

    def batch(self, rows: NDArray[np.int64], padding: Padding) -> Batch:
        """The padded batch of these rows."""
        return pad_pairs(self.source.take(rows), self.target.take(rows), rows, padding)

    def source_text(self, row: int) -> str:
        return self._table["source"][row].as_py()

    def target_text(self, row: int) -> str:
        return self._table["target"][row].as_py()

    def links(self, kind: Literal["sure", "possible"], row: int) -> NDArray[np.int64]:
        """(n, 2) [target position, source position]; empty where the corpus has none."""
        name = f"{kind}_links"
        links = self._table[name][row].as_py() if name in self._table.column_names else []
        return np.array(links, dtype=np.int64).reshape(-1, 2)

    def words(self, row: int) -> list[NDArray[np.int64]] | None:
        """The word of each source token, (S,), and of each target token, (T,), -1 between words.

        None if the corpus aligns no words.
        """
        if "source_words" not in self._table.column_names:
            return None
        of_sides = []
        for side in ("source", "target"):
            words = self._table[f"{side}_words"][row].as_py()
            of_sides.append(np.array(words, dtype=np.int64))
        return of_sides


class LabelledSplit(MappedSplit):
    """The sentences of one split.

    Ids come without `<eos>`; labels are the numbers of the classes, (rows,).
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ids = MappedIds(self._table["ids"])
        self.labels: NDArray[np.int64] = self._table["label"].to_numpy().astype(np.int64)
        self.source_lengths = self.ids.lengths
        # A label takes no tokens of a batch
        self.target_lengths = np.zeros_like(self.source_lengths)

    def batch(self, rows: NDArray[np.int64], padding: Padding) -> LabelledBatch:
        """The padded batch of these rows."""
        return pad_labelled(self.ids.take(rows), self.labels[rows], rows, padding)

    def source_text(self, row: int) -> str:
        return self._table["text"][row].as_py()


SplitT = TypeVar("SplitT", bound=MappedSplit, covariant=True)
InfoT = TypeVar("InfoT", bound=Info, covariant=True)


class PreparedFolder(Generic[SplitT, InfoT]):
    """A folder written by `attnlab.data.prepare.prepare`.

    Splits are opened when they are first used, and are memory-mapped.

    tokenizer_files: their names; a model keeps a copy of them.
    unit: the name of the rows in the statistics.

    info, stats: the contents of `data.json` and `stats.json`.
    sizes: rows of each split.

    Raises ExperimentError where a file is missing or damaged, or was prepared in another format.
    """

    tokenizer_files: ClassVar[tuple[str, ...]]
    unit: ClassVar[str]
    split_type: Callable[[Path], SplitT]
    info_type: type[InfoT]

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        missing = [name for name in self.files() if not (self.folder / name).is_file()]
        if missing:
            raise ExperimentError(
                f"{self.folder} lacks prepared data: {', '.join(missing)} missing; {_REMEDY}"
            )
        self.info: InfoT = read_own_record(self.folder / "data.json", self.info_type, _REMEDY)
        if self.info.format != FORMAT:
            raise ExperimentError(
                f"{self.folder} has format {self.info.format}, not {FORMAT}; {_REMEDY}"
            )
        self.stats = read_own_record(self.folder / "stats.json", dict[str, Any], _REMEDY)
        self.sizes = {split: self.stats["splits"][split][self.unit] for split in SPLITS}
        self._splits: dict[str, SplitT] = {}

    @classmethod
    def files(cls) -> list[str]:
        """The names of the files, sorted."""
        return sorted((*_SHARED, *cls.tokenizer_files))

    @classmethod
    def is_other_kind(cls, folder: Path) -> bool:
        """Whether a folder has prepared data, but none of this kind."""
        is_ours = all((folder / name).is_file() for name in cls.tokenizer_files)
        return (folder / "data.json").is_file() and not is_ours

    def split(self, name: str) -> SplitT:
        """The split called `train`, `validation` or `test`."""
        if name not in self._splits:
            file = self.folder / f"{name}.arrow"
            try:
                self._splits[name] = self.split_type(file)
            except (pa.ArrowException, OSError, KeyError, TypeError) as error:
                raise ExperimentError(f"{file} cannot be read ({error}); {_REMEDY}") from error
        return self._splits[name]

    @property
    def digest(self) -> str:
        """SHA-256 over the names and bytes of the folder's files, read again each time."""
        digest = hashlib.sha256()
        for name in self.files():
            with (self.folder / name).open("rb") as file:
                of_file = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{name}:{of_file}\n".encode())
        return digest.hexdigest()


# What the code of all tasks knows of prepared data.
Prepared = PreparedFolder[MappedSplit, Info]


class PreparedData(PreparedFolder[PreparedSplit, DataInfo]):
    """Prepared sentence pairs; see `PreparedFolder`."""

    tokenizer_files = ("source_tokenizer.json", "target_tokenizer.json")
    unit = "pairs"
    split_type = PreparedSplit
    info_type = DataInfo

    @cached_property
    def source_tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "source_tokenizer.json")

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "target_tokenizer.json")


class LabelledData(PreparedFolder[LabelledSplit, LabelledInfo]):
    """Prepared labelled sentences; see `PreparedFolder`."""

    tokenizer_files = ("tokenizer.json",)
    unit = "sentences"
    split_type = LabelledSplit
    info_type = LabelledInfo

    @property
    def labels(self) -> list[str]:
        """The names of the classes, by their numbers."""
        return self.info.labels

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "tokenizer.json")


def write_sample(folder: Path, into: Path, rows: int) -> None:
    """Copy a folder of prepared data, with only a sample of validation and of test.

    rows: of each of the two, evenly spaced. The training split is copied whole.
    """
    shutil.copytree(folder, into)
    for split in ("validation", "test"):
        table = open_rows(folder / f"{split}.arrow")
        chosen = np.unique(np.linspace(0, table.num_rows - 1, rows).astype(np.int64))
        with (
            pa.OSFile(str(into / f"{split}.arrow"), "wb") as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table.take(pa.array(chosen)))


def read_labels(path: Path) -> list[str]:
    """The names of the classes in a `data.json`; raises ExperimentError where they are missing."""
    return read_own_record(path, LabelledInfo, "take a whole folder").labels
