"""The prepared data of an experiment, as `prepare` wrote it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attnlab.composition.error import ExperimentError
from attnlab.data.corpus import SPLITS
from attnlab.data.ragged import Ragged
from attnlab.data.tokenizer import Tokenizer

FORMAT = 1
FILES = (
    *(f"{split}.parquet" for split in SPLITS),
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
    bleu_tokenize: str
    joint: bool
    has_alignments: bool

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2, sort_keys=True) + "\n", encoding="utf-8")


class PreparedSplit:
    """The pairs of one split. Ids come without `<bos>` and `<eos>`.

    Links are arrays (n, 2) of [target position, source position]; they are empty where the corpus has none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.source = self._ragged("source_ids")
        self.target = self._ragged("target_ids")
        self.has_alignments = "sure_links" in pq.read_schema(path).names

    def __len__(self) -> int:
        return len(self.source)

    @property
    def source_lengths(self) -> NDArray[np.int64]:
        return self.source.lengths

    @property
    def target_lengths(self) -> NDArray[np.int64]:
        return self.target.lengths

    def source_ids(self, row: int) -> NDArray[np.int32]:
        return self.source[row]

    def target_ids(self, row: int) -> NDArray[np.int32]:
        return self.target[row]

    def source_text(self, row: int) -> str:
        return self._texts("source")[row].as_py()

    def target_text(self, row: int) -> str:
        return self._texts("target")[row].as_py()

    def sure_links(self, row: int) -> NDArray[np.int64]:
        return self._links("sure_links", row)

    def possible_links(self, row: int) -> NDArray[np.int64]:
        return self._links("possible_links", row)

    def _links(self, name: str, row: int) -> NDArray[np.int64]:
        links = self._columns[name][row].as_py() if self.has_alignments else []
        return np.array(links, dtype=np.int64).reshape(-1, 2)

    def _texts(self, name: str) -> pa.ChunkedArray:
        return self._columns[name]

    @cached_property
    def _columns(self) -> pa.Table:
        """Text and links, which training never asks for."""
        names = [n for n in pq.read_schema(self._path).names if n not in ("source_ids", "target_ids")]
        return pq.read_table(self._path, columns=names, memory_map=True).combine_chunks()

    def _ragged(self, name: str) -> Ragged:
        column = pq.read_table(self._path, columns=[name], memory_map=True)[name]
        chunk = column.combine_chunks() if column.num_chunks else pa.array([], pa.list_(pa.int32()))
        if isinstance(chunk, pa.ChunkedArray):
            chunk = pa.concat_arrays(chunk.chunks)
        return Ragged(
            chunk.flatten().to_numpy(zero_copy_only=True),
            chunk.offsets.to_numpy(zero_copy_only=True).astype(np.int64),
        )


class PreparedData:
    """A folder written by `attnlab.data.prepare.prepare`. Splits are read when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        missing = [name for name in FILES if not (self.folder / name).is_file()]
        if missing:
            raise ExperimentError(f"{self.folder} is no prepared data: {', '.join(missing)} missing; prepare it again")
        facts = self._json("data.json")
        if facts.get("format") != FORMAT:
            raise ExperimentError(
                f"{self.folder} was prepared in format {facts.get('format')}, this version reads {FORMAT}; "
                "run the prepare stage again"
            )
        self.stats = self._json("stats.json")
        try:
            self.info = DataInfo(**facts)
            self.stats["splits"]["train"]["pairs"]
        except (KeyError, TypeError) as error:
            raise ExperimentError(f"{self.folder} is incomplete ({error}); run the prepare stage again") from error
        self._splits: dict[str, PreparedSplit] = {}

    def split(self, name: str) -> PreparedSplit:
        """name: `train`, `validation` or `test`."""
        if name not in SPLITS:
            raise ValueError(f"the split must be one of {', '.join(SPLITS)}, got {name}")
        if name not in self._splits:
            try:
                self._splits[name] = PreparedSplit(self.folder / f"{name}.parquet")
            except (pa.ArrowException, OSError, KeyError) as error:
                raise ExperimentError(
                    f"{self.folder / name}.parquet cannot be read ({error}); run the prepare stage again"
                ) from error
        return self._splits[name]

    @cached_property
    def source_tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "source_tokenizer.json")

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.folder / "target_tokenizer.json")

    @property
    def digest(self) -> str:
        """sha256 over the names and bytes of the folder's files; read anew each time."""
        digest = hashlib.sha256()
        for name in sorted(FILES):
            with (self.folder / name).open("rb") as file:
                digest.update(f"{name}:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return digest.hexdigest()

    def _json(self, name: str) -> dict[str, Any]:
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ExperimentError(
                f"{self.folder / name} cannot be read ({error}); run the prepare stage again"
            ) from error
