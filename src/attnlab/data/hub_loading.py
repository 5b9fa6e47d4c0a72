"""Loading with `datasets` from the hub, folders and files, and its errors as one sentence each.

`datasets` runs no script and reads no pickle of a folder or of the hub; only its readers of known kinds are used.
"""

from __future__ import annotations

import csv
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pyarrow as pa
from huggingface_hub import errors as hub_errors

from attnlab.data.file_faults import READERS, data_files, find_fault, kind_of
from attnlab.errors import ExperimentError, show

_HUB_SECONDS = 10.0


def load_splits(
    dataset: str | None, path: Path | None, name: str | None, revision: str | None, source: str, target: str
) -> dict[str, datasets.Dataset]:
    """All splits of a hub dataset, or of the local `path` that takes its place.

    source, target: columns; for parallel text files their suffixes.
    """
    if path is not None:
        return _load_local(path, name, source, target)
    if dataset is None:
        raise ExperimentError(
            "data.path is not set, and data.dataset names no dataset of the Hugging Face hub either; give "
            "data.path a local folder or file"
        )
    return _load_from_hub(dataset, name, revision)


def _load_local(path: Path, name: str | None, source: str, target: str) -> dict[str, datasets.Dataset]:
    _check_is_there(path)
    # Reading a local file anew is cheap, and a cache of it could go stale. The pairs stay readable when the
    # folder is gone, because they are mapped by then.
    with tempfile.TemporaryDirectory(prefix="attnlab-") as cache, _quiet():
        try:
            found = _read(path, name, source, target, cache)
            for split in found.values():
                split.data.table.validate(full=True)
        except ExperimentError:
            raise
        except Exception as error:  # the library passes on whatever its readers raise
            raise ExperimentError(_local_fault(path, name, error)) from error
    return found


def _check_is_there(path: Path) -> None:
    try:
        if path.exists():
            return
        names = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else None
    except OSError as error:  # such as a name that is too long to be one
        raise ExperimentError(
            f"data.path: {show(str(path))} cannot be used: {error.strerror}; give a local folder or file"
        ) from error
    seen = None if names is None else [name for name in names if not name.startswith(".")]
    there = f"{path.parent} does not exist either" if seen is None else f"{path.parent} has: {_list(seen)}"
    raise ExperimentError(f"data.path: there is no {path}; give a local folder or file; {there}")


def _read(path: Path, name: str | None, source: str, target: str, cache: str) -> dict[str, datasets.Dataset]:
    if path.is_dir():
        parallel = _parallel_files(path, source, target)
        if parallel:
            return _read_parallel(parallel, source, target, cache)
        _check_kind(f"data.path: {path}", datasets.load_dataset_builder(str(path), name=name, cache_dir=cache))
        return dict(datasets.load_dataset(str(path), name=name, cache_dir=cache, **_csv_options(path)))
    reader = READERS.get(kind_of(path))
    if reader is None:
        raise ExperimentError(f"data.path: {path} is no file of a known kind; allowed are: {', '.join(READERS)}")
    return dict(datasets.load_dataset(reader, data_files=str(path), cache_dir=cache, **_csv_options(path)))


def _check_kind(where: str, builder: datasets.DatasetBuilder) -> None:
    """Raise ExperimentError where the data would be read by another reader than those of the known kinds."""
    kind = type(builder).__module__.rpartition(".")[2]
    if kind not in (*READERS.values(), "cache"):  # `cache` reads what an earlier run downloaded
        raise ExperimentError(
            f"{where} holds files of the kind {kind}; known kinds are: {', '.join(READERS)}, each also with .gz"
        )


def _csv_options(path: Path) -> dict[str, Any]:
    """`None` and `NA` are words here, not missing values, and a quotation mark in tsv is one."""
    kinds = {kind_of(file) for file in data_files(path)}
    if kinds == {"tsv"}:
        return {"na_filter": False, "sep": "\t", "quoting": csv.QUOTE_NONE}
    return {"na_filter": False} if kinds == {"csv"} else {}


def _parallel_files(folder: Path, source: str, target: str) -> dict[str, tuple[Path, Path]]:
    """By split: `train.de` and `train.en`, for the columns de and en."""
    pairs = {}
    for suffix in ("", ".gz"):
        for file in sorted(folder.glob(f"*.{source}{suffix}")):
            other = file.with_name(file.name.removesuffix(f".{source}{suffix}") + f".{target}{suffix}")
            if other.is_file():
                pairs[file.name.removesuffix(f".{source}{suffix}")] = (file, other)
    return pairs


def _read_parallel(
    files: dict[str, tuple[Path, Path]], source: str, target: str, cache: str
) -> dict[str, datasets.Dataset]:
    sides = [
        datasets.load_dataset(
            "text", data_files={split: str(pair[i]) for split, pair in files.items()}, cache_dir=cache
        )
        for i in (0, 1)
    ]
    joined = {}
    for split, pair in files.items():
        left, right = sides[0][split], sides[1][split]
        if len(left) != len(right):
            raise ExperimentError(
                f"data.path: {pair[0]} has {len(left)} lines, but {pair[1]} has {len(right)}; give files in which the "
                f"same line is the same sentence"
            )
        columns = [left.rename_column("text", source), right.rename_column("text", target)]
        joined[split] = datasets.concatenate_datasets(columns, axis=1)
    return joined


def _load_from_hub(dataset: str, name: str | None, revision: str | None) -> dict[str, datasets.Dataset]:
    if Path(dataset).exists():  # `load_dataset` would read the folder
        raise ExperimentError(f"data.dataset: {dataset} lies on this machine; give it to data.path instead")
    unreachable = _why_unreachable(dataset, revision)
    with _offline() if unreachable else _quiet():
        try:
            builder = datasets.load_dataset_builder(dataset, name=name, revision=revision)
            _check_kind(f"data.dataset: {dataset}", builder)
            builder.download_and_prepare()
            return dict(builder.as_dataset())
        except ExperimentError:
            raise
        except Exception as error:  # the library passes on whatever its readers raise
            if unreachable:
                raise ExperimentError(
                    f"data.dataset: the Hugging Face hub cannot be reached for {dataset!r} ({unreachable}), "
                    "and the local cache has no copy of it; give data.path a local folder or file instead"
                ) from error
            key = "data.name" if "onfig" in str(error) else "data.dataset"
            raise ExperimentError(f"{key}: {dataset!r} cannot be loaded: {_reason(error)}") from error


def _why_unreachable(dataset: str, revision: str | None) -> str | None:
    """Why the hub gives no answer, or None where it does. `datasets` alone tries for half a minute."""
    with _quiet():
        try:
            huggingface_hub.HfApi().dataset_info(dataset, revision=revision, timeout=_HUB_SECONDS)
        except hub_errors.RevisionNotFoundError as error:
            raise ExperimentError(f"data.revision: {dataset!r} has no revision {revision!r}") from error
        except hub_errors.GatedRepoError as error:
            raise ExperimentError(
                f"data.dataset: {dataset!r} is only for those who accepted its terms on the hub and logged in"
            ) from error
        except hub_errors.RepositoryNotFoundError as error:
            raise ExperimentError(
                f"data.dataset: there is no {dataset!r} on the Hugging Face hub, or it is private; ids read "
                "owner/name, such as bentrevett/multi30k"
            ) from error
        except hub_errors.HFValidationError as error:
            raise ExperimentError(
                f"data.dataset: {dataset!r} is no id of the hub; one reads owner/name, as bentrevett/multi30k"
            ) from error
        except Exception as error:  # whatever the HTTP library of the day raises
            return _reason(error)
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the library: errors are raised in our own words, and small local files need no progress bars."""
    logger = logging.getLogger("datasets")
    level, bars = logger.level, datasets.are_progress_bars_disabled()
    logger.setLevel(logging.CRITICAL + 1)
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        logger.setLevel(level)
        if not bars:
            datasets.enable_progress_bars()


@contextmanager
def _offline() -> Iterator[None]:
    """As with HF_HUB_OFFLINE=1, which the libraries only read when they are imported."""
    modules: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    before = [module.HF_HUB_OFFLINE for module in modules]
    for module in modules:
        module.HF_HUB_OFFLINE = True
    try:
        with _quiet():
            yield
    finally:
        for module, value in zip(modules, before, strict=True):
            module.HF_HUB_OFFLINE = value


def _local_fault(path: Path, name: str | None, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"data.path: {error.filename or path} cannot be read: {error.strerror}; give files that can be read"
    fault = find_fault(path)
    if fault is not None:
        remedy = "" if ";" in fault else "; mend the file, or leave out what is wrong"
        return f"data.path: {fault}{remedy}"
    if name is not None and "BuilderConfig" in str(error):
        return f"data.name: {path} has no configuration {name!r} ({_reason(error)}); null takes the default"
    if not data_files(path):
        return f"data.path: {path} has no data files; known kinds are: {', '.join(READERS)}, each also with .gz"
    if isinstance(error, StopIteration) or "corresponds to no data" in str(error):
        return f"data.path: {path} has no rows; give one that has some"
    return f"data.path: {path} cannot be read as a dataset ({_reason(error)}); mend the files, or leave some out"


def _reason(error: BaseException) -> str:
    """The first line of what really happened."""
    if isinstance(error, datasets.exceptions.DatasetGenerationError | pa.ArrowException) and error.__cause__:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith("An error occurred while generating the dataset")]
    return ((reasons or lines or [type(error).__name__])[0]).rstrip(".")


def _list(names: list[str], most: int = 12) -> str:
    shown = ", ".join(names[:most]) or "nothing"
    return f"{shown}, and {len(names) - most} more" if len(names) > most else shown
