"""Loading with `datasets` from the hub, folders and files, and its errors as one sentence each.

`datasets` runs no script and reads no pickle of a folder or of the hub; only its readers of known kinds are used.
"""

from __future__ import annotations

import csv
import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets

from attnlab.errors import ExperimentError

READERS = {"json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}
"""Suffix -> module of `datasets`."""
KNOWN_KINDS = f"known kinds are: {', '.join(READERS)}, each also with .gz"


def load_splits(
    dataset: str | None, path: Path | None, name: str | None, revision: str | None, *columns: str
) -> dict[str, datasets.Dataset]:
    """All splits of a hub dataset, or of the local `path` that takes its place.

    columns: the wanted ones, two at least; for parallel text files their suffixes.
    """
    if path is not None:
        return _load_local(path, name, columns)
    if dataset is None:
        raise ExperimentError("data.path and data.dataset are both null; give data.path a local folder or file")
    return _load_from_hub(dataset, name, revision)


def _load_local(path: Path, name: str | None, columns: Sequence[str]) -> dict[str, datasets.Dataset]:
    if not path.exists():
        raise ExperimentError(f"data.path: there is no {path}; give a local folder or file")
    # Reading a local file anew is cheap, and a cache of it could go stale. The rows stay readable when the
    # folder is gone, because they are mapped by then.
    with tempfile.TemporaryDirectory(prefix="attnlab-") as cache, _library(f"data.path: {path}"):
        found = _read(path, name, columns, cache)
        for split in found.values():
            split.data.table.validate(full=True)
    return found


def _read(path: Path, name: str | None, columns: Sequence[str], cache: str) -> dict[str, datasets.Dataset]:
    if path.is_dir():
        parallel = _read_parallel(path, columns, cache)
        if parallel:
            return parallel
        _check_kind(f"data.path: {path}", datasets.load_dataset_builder(str(path), name=name, cache_dir=cache))
        return dict(datasets.load_dataset(str(path), name=name, cache_dir=cache, **_csv_options(path)))
    reader = READERS.get(_kind_of(path))
    if reader is None:
        raise ExperimentError(f"data.path: {path} is no file of a known kind; {KNOWN_KINDS}")
    return dict(datasets.load_dataset(reader, data_files=str(path), cache_dir=cache, **_csv_options(path)))


def _kind_of(file: Path) -> str:
    """The suffix without `.gz`, in small letters."""
    return file.name.removesuffix(".gz").rsplit(".", 1)[-1].lower()


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("[!.]*") if file.is_file())


def _check_kind(where: str, builder: datasets.DatasetBuilder) -> None:
    """Raise ExperimentError where the data would be read by another reader than those of the known kinds."""
    kind = type(builder).__module__.rpartition(".")[2]
    if kind not in (*READERS.values(), "cache"):  # `cache` reads what an earlier run downloaded
        raise ExperimentError(f"{where} holds files of the kind {kind}; {KNOWN_KINDS}")


def _csv_options(path: Path) -> dict[str, Any]:
    """`None` and `NA` are words here, not missing values, and a quotation mark in tsv is one."""
    kinds = {_kind_of(file) for file in _files(path)} & READERS.keys()
    if kinds == {"tsv"}:
        return {"na_filter": False, "sep": "\t", "quoting": csv.QUOTE_NONE}
    return {"na_filter": False} if kinds == {"csv"} else {}


def _read_parallel(folder: Path, columns: Sequence[str], cache: str) -> dict[str, datasets.Dataset]:
    """The splits of parallel text files, such as `train.de` and `train.en` for the columns de and en, if any.

    The first two columns need a file; the others have one where there is one.
    """
    joined = {}
    for first in sorted((*folder.glob(f"*.{columns[0]}"), *folder.glob(f"*.{columns[0]}.gz"))):
        split, _, suffix = first.name.rpartition(f".{columns[0]}")
        files = {column: folder / f"{split}.{column}{suffix}" for column in columns}
        if not files[columns[1]].is_file():
            continue
        read = []
        for column, file in files.items():
            if file.is_file():
                lines = datasets.load_dataset("text", data_files=str(file), cache_dir=cache, split="train")
                read.append(lines.rename_column("text", column))
            if len(read[-1]) != len(read[0]):
                raise ExperimentError(
                    f"data.path: {first} has {len(read[0])} lines, but {file} has {len(read[-1])}; give files in "
                    "which the same line is the same sentence"
                )
        joined[split] = datasets.concatenate_datasets(read, axis=1)
    return joined


def _load_from_hub(dataset: str, name: str | None, revision: str | None) -> dict[str, datasets.Dataset]:
    if Path(dataset).exists():  # `load_dataset` would read the folder
        raise ExperimentError(f"data.dataset: {dataset} lies on this machine; give it to data.path instead")
    with _library(f"data.dataset: {dataset}"):
        builder = datasets.load_dataset_builder(dataset, name=name, revision=revision)
        _check_kind(f"data.dataset: {dataset}", builder)
        builder.download_and_prepare()
        return dict(builder.as_dataset())


@contextmanager
def _library(place: str) -> Iterator[None]:
    """Silence `datasets`, and raise its errors as one sentence that begins with the place in the config."""
    logger = logging.getLogger("datasets")
    level, bars = logger.level, datasets.are_progress_bars_disabled()
    logger.setLevel(logging.CRITICAL + 1)
    datasets.disable_progress_bars()
    try:
        yield
    except ExperimentError:
        raise
    except Exception as error:  # the library passes on whatever its readers raise
        raise ExperimentError(f"{place} cannot be loaded: {_reason(error)}") from error
    finally:
        logger.setLevel(level)
        if not bars:
            datasets.enable_progress_bars()


def _reason(error: BaseException) -> str:
    """The first line of the error, or of its cause where it only says that there was one."""
    if isinstance(error, datasets.exceptions.DatasetGenerationError) and error.__cause__:
        error = error.__cause__
    message = "it has no rows" if isinstance(error, StopIteration) else str(error).strip()
    return (message or type(error).__name__).splitlines()[0].rstrip(".")
