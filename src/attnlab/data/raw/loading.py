"""From a dataset of the hub, or a local folder or file, to a `datasets.Dataset` for each split.

`datasets` resolves splits and file names, and downloads; it runs no script of a folder or of the
hub and reads no pickle. The bytes go through the readers beside this module.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub

from attnlab.data.raw.cards import form_of_card
from attnlab.data.raw.folders import (
    Found,
    check_module,
    files_of_path,
    local_builder,
    one_line,
    sources_of,
)
from attnlab.data.raw.rows import Format, Wanted, write_rows
from attnlab.data.raw.sources import Saved
from attnlab.errors import ExperimentError


class RawData:
    """The splits of a hub dataset, or of the local `path` that takes its place.

    Each is read when it is asked for.

    columns: the wanted ones by their new names, two at least.
    optional: of these the new names of those that a file may lack; they stand last.
    wanted: names of splits, for a local folder, where each may be that of a file.
    notes: sentences about what was ignored.

    Raises ExperimentError, which begins with the setting and the file, for whatever cannot be read.
    """

    def __init__(
        self,
        dataset: str | None,
        path: Path | None,
        name: str | None,
        revision: str | None,
        columns: Mapping[str, str],
        form: Format,
        wanted: Collection[str] = (),
        optional: Collection[str] = (),
    ) -> None:
        if path is None and dataset is None:
            raise ExperimentError(
                "data.path and data.dataset are both null; give data.path a local folder or file"
            )
        self.place = f"data.dataset: {dataset}" if path is None else f"data.path: {path}"
        with _library(self.place):
            if path is None:
                found = _files_of_hub(str(dataset), name, revision, form)
            else:
                found = files_of_path(path, name, list(columns.values()), form, wanted)
        self._splits = found.splits
        self._columns = columns
        self._wanted = Wanted(
            required=[name for key, name in columns.items() if key not in optional],
            optional=[name for key, name in columns.items() if key in optional],
        )
        self.notes = list(found.notes)

    @property
    def splits(self) -> list[str]:
        """The names of the splits."""
        return list(self._splits)

    def read(self, split: str) -> datasets.Dataset:
        """The wanted columns of a split, as text, with PLACE and FAULT beside them.

        It also raises MissingColumnError.
        """
        rows = chain.from_iterable(
            source.rows(self._wanted, self._note) for source in self._splits[split]
        )
        # Reading again is cheap, and a cache could become stale. The rows are memory-mapped: they
        # stay readable after their file is removed.
        with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
            name = split.replace("/", "_")
            read = write_rows(rows, self._columns, Path(folder) / f"{name}.arrow")
        if not len(read):
            raise ExperimentError(f"{self.place} has no rows in split {split!r}")
        return read

    def class_names(self, splits: Iterable[str], column: str) -> list[str] | None:
        """The names of the labels 0, 1, ..., where the splits know them.

        Raises ExperimentError where a number is one label in one file and another in another.
        """
        longest: list[str] = []
        of_longest = ""
        for split in splits:
            for source in self._splits[split]:
                names = source.class_names(column) or []
                shared = min(len(names), len(longest))
                if names[:shared] != longest[:shared]:
                    raise ExperimentError(
                        f"data.label: the split {split!r} names its labels 0, 1, ... "
                        f"{', '.join(names)}, but {of_longest!r} names them {', '.join(longest)}; "
                        "write the names in place of the numbers, or number all splits alike (a "
                        "`ClassLabel` of all names, in `datasets`)"
                    )
                if len(names) > len(longest):
                    longest, of_longest = names, split
        return longest or None

    def has_typed_columns(self, split: str) -> bool:
        """Whether a column of classes holds their numbers, and never their names."""
        return all(source.has_typed_columns for source in self._splits[split])

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def _files_of_hub(dataset: str, name: str | None, revision: str | None, form: Format) -> Found:
    """The splits of a dataset of the hub, downloaded, or as an earlier command left them."""
    if Path(dataset).exists():  # `datasets` would read the folder
        raise ExperimentError(
            f"data.dataset: {dataset} lies on this machine; give it to data.path instead"
        )
    place = f"data.dataset: {dataset}"
    try:
        builder = datasets.load_dataset_builder(dataset, name=name, revision=revision)
    except OSError as error:
        downloaded = _downloaded_before(dataset, revision)
        if downloaded is None:
            raise
        return _files_of_snapshot(downloaded, name, form, place, error)
    if type(builder).__module__.rpartition(".")[2] == "cache":
        return _prepared_by_datasets(builder, place)

    resolved: Mapping[Any, list[str]] = builder.config.data_files or {}
    all_urls = list(chain.from_iterable(resolved.values()))
    check_module(place, builder, [url.rpartition("/")[2] for url in all_urls])

    paths_of_splits: dict[str, list[str]] = {}
    for split, urls in resolved.items():
        paths_of_splits[str(split)] = [_path_in_repository(url) for url in urls]
    wanted = list(chain.from_iterable(paths_of_splits.values()))
    # The card says which files form which split. A later command without a network needs it.
    patterns = [*wanted, "README.md", ".huggingface.yaml"]
    folder = huggingface_hub.snapshot_download(
        dataset, repo_type="dataset", revision=revision, allow_patterns=patterns
    )

    files: dict[str, list[tuple[Path, str]]] = {}
    for split, paths in paths_of_splits.items():
        files[split] = [(Path(folder, path), path) for path in paths]
    form = form_of_card(builder, wanted, form, place)
    return Found(sources_of(files, form, builder.info.features, place))


def _path_in_repository(url: str) -> str:
    """`data/train.csv` of `hf://datasets/owner/name@revision/data/train.csv`."""
    found: Any = huggingface_hub.HfFileSystem().resolve_path(url)
    return str(found.path_in_repo)


def _downloaded_before(dataset: str, revision: str | None) -> Path | None:
    """The folder of a dataset that an earlier command downloaded, for work without a network."""
    try:
        cache = huggingface_hub.scan_cache_dir()
    except huggingface_hub.CacheNotFound:
        return None
    for repository in cache.repos:
        if (repository.repo_type, repository.repo_id) != ("dataset", dataset):
            continue
        for downloaded in repository.revisions:
            if (revision or "main") in (*downloaded.refs, downloaded.commit_hash):
                return downloaded.snapshot_path
    return None


def _files_of_snapshot(
    folder: Path, name: str | None, form: Format, place: str, error: Exception
) -> Found:
    """The splits of a dataset in the cache of the hub.

    error: why the hub cannot be reached.
    """
    builder = local_builder(folder, name)
    files: dict[str, list[tuple[Path, str]]] = {}
    for split, paths in (builder.config.data_files or {}).items():
        of_split = []
        for path in map(Path, paths):
            of_split.append((path, path.relative_to(folder).as_posix()))
        files[str(split)] = of_split
    names = [inside for of_split in files.values() for _, inside in of_split]
    check_module(place, builder, names)
    form = form_of_card(builder, names, form, place)
    note = (
        f"{place}: the hub cannot be reached ({one_line(error)}); read what was downloaded before"
    )
    return Found(sources_of(files, form, builder.info.features, place), [note])


def _prepared_by_datasets(builder: datasets.DatasetBuilder, place: str) -> Found:
    """The copy that `datasets` itself prepared earlier, for when the hub cannot be reached.

    Its types are those that `datasets` guessed.
    """
    builder.download_and_prepare()
    prepared: Any = builder.as_dataset()
    note = (
        f"{place}: the hub cannot be reached; read the copy that `datasets` prepared before, with "
        "its types"
    )
    return Found({split: [Saved(rows, split)] for split, rows in prepared.items()}, [note])


@contextmanager
def _library(place: str) -> Iterator[None]:
    """Silence `datasets`, and raise its errors as one sentence that begins with `place`.

    place: the place in the config.
    """
    logger = logging.getLogger("datasets")
    level = logger.level
    had_no_bars = datasets.are_progress_bars_disabled()
    logger.setLevel(logging.CRITICAL + 1)
    datasets.disable_progress_bars()
    try:
        yield
    except ExperimentError:
        raise
    except Exception as error:  # the library passes on whatever its readers raise
        raise ExperimentError(f"{place} cannot be loaded: {one_line(error)}") from error
    finally:
        logger.setLevel(level)
        if not had_no_bars:
            datasets.enable_progress_bars()
