"""Which files of a folder make which split, and sentences for those that make none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets

from attnlab.data.raw.cards import form_of_card
from attnlab.data.raw.lines import unpacked_name
from attnlab.data.raw.parallel import parallel_files
from attnlab.data.raw.rows import Format, shown_names
from attnlab.data.raw.sources import (
    KNOWN_KINDS,
    File,
    ParallelFiles,
    Saved,
    Source,
    check_format,
    kind_of,
)
from attnlab.data.raw.split_names import (
    Files,
    are_called_otherwise,
    by_their_names,
    check_each_in_one_split,
    files_called,
    in_several_splits,
    names_in,
    of_known_kinds,
)
from attnlab.errors import ExperimentError

MODULES = ("csv", "json", "parquet")
"""Of `datasets`, the readers whose files are read here."""


@dataclass(frozen=True)
class Found:
    """Where the rows of each split come from.

    notes: sentences about what was ignored.
    """

    splits: Mapping[str, Sequence[Source]]
    notes: list[str] = field(default_factory=list)


def files_of_path(
    path: Path,
    name: str | None,
    columns: Sequence[str],
    form: Format,
    wanted: Collection[str] = (),
) -> Found:
    """What a local folder or file holds.

    name: the configuration of a dataset's card.
    columns: the wanted ones, two at least; for parallel text files their suffixes.
    wanted: names of splits; each may be that of a file in which `datasets` sees no split.

    Raises ExperimentError where there is nothing of a known kind.
    """
    if not path.exists():
        raise ExperimentError(f"data.path: there is no {path}; give a local folder or file")
    place = f"data.path: {path}"
    if path.is_file():
        return Found({"train": [_single_file(path, form, place)]})
    if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
        return Found(_saved_on_disk(path, form, place))

    parallel = parallel_files(path, columns, place)
    required = set(columns[:2])
    splits: dict[str, list[Source]] = {}
    for split, files in parallel.items():
        if required <= files.keys():
            splits[split] = [ParallelFiles(files, form)]
    if splits:
        check_format(form, "parallel text", place)
        return Found(splits, _notes_beside_parallel(path, parallel, columns))
    return _as_datasets_resolves(path, name, columns, form, place, parallel, wanted)


def sources_of(
    files: Files, form: Format, features: datasets.Features | None, place: str
) -> dict[str, list[Source]]:
    """The sources of each split.

    features: that the dataset's card gives.
    """
    splits: dict[str, list[Source]] = {}
    for split, of_split in files.items():
        sources: list[Source] = []
        for path, name in of_split:
            # A file of the hub lies in a cache, whose path says nothing to the user.
            is_of_hub = place.startswith("data.dataset")
            its_place = f"{place}, {name}" if is_of_hub else f"data.path: {printable(str(path))}"
            kind = kind_of(name, form)
            if kind is None:
                raise ExperimentError(f"{its_place} is no file of a known kind; {KNOWN_KINDS}")
            check_format(form, kind, its_place)
            sources.append(File(path, name, its_place, kind, form, features))
        splits[split] = sources
    return splits


def local_builder(folder: Path, name: str | None) -> datasets.DatasetBuilder:
    """How `datasets` resolves a folder; it leaves nothing in a cache."""
    with tempfile.TemporaryDirectory(prefix="attnlab-") as cache:
        return datasets.load_dataset_builder(str(folder), name=name, cache_dir=cache)


def check_module(place: str, builder: datasets.DatasetBuilder, files: Sequence[str]) -> None:
    """Raise ExperimentError where the data are of another kind than the known ones.

    files: names of some of its files.
    """
    module = type(builder).__module__.rpartition(".")[2]
    if module not in MODULES:
        raise ExperimentError(
            f"{place} holds files of the kind {module}; {KNOWN_KINDS}; it holds "
            f"{shown_names(files, 4)}"
        )


def _single_file(path: Path, form: Format, place: str) -> Source:
    kind = kind_of(path.name, form)
    if kind is None and unpacked_name(path.name).endswith(".txt"):
        raise ExperimentError(
            f"{place} is a text file: name the columns of a table by data.columns, such as "
            "data.columns=[en,de]; of two parallel files give the folder"
        )
    if kind is None:
        raise ExperimentError(f"{place} is no file of a known kind; {KNOWN_KINDS}")
    check_format(form, kind, place)
    return File(path, path.name, place, kind, form)


def _saved_on_disk(path: Path, form: Format, place: str) -> dict[str, list[Source]]:
    """What `save_to_disk` of `datasets` wrote."""
    check_format(form, "datasets", place)
    found: Any = datasets.load_from_disk(str(path))
    splits = found if isinstance(found, datasets.DatasetDict) else {"train": found}
    return {split: [Saved(rows, split)] for split, rows in splits.items()}


def _as_datasets_resolves(
    path: Path,
    name: str | None,
    columns: Sequence[str],
    form: Format,
    place: str,
    parallel: Mapping[str, Any],
    wanted: Collection[str],
) -> Found:
    """The splits that `datasets` finds in a folder, by its card or by the names of its files.

    Where it finds none, or takes several files for one split, the words in the files' names decide.

    parallel: text files of one side alone, for an error.
    """
    inside = _files_in(path)
    tables = [(file, _name_in(path, file)) for file in inside if kind_of(file.name, form)]
    if not tables:
        raise ExperimentError(_nothing_to_read(path, inside, columns, parallel))
    has_card = (path / "README.md").is_file()
    if _is_pattern(path):
        if has_card or name is not None:
            raise ExperimentError(
                f"{place}: `datasets`, which reads its card, takes *, ?, [, ] and :: in a path for "
                "a pattern; rename the folder, or give a link to it that has none of them"
            )
        files = by_their_names(tables, place)
        return Found(sources_of(files, form, None, place), _notes_on_files(files, tables))
    try:
        builder = local_builder(path, name)
    except (FileNotFoundError, ValueError) as error:
        if name is not None:
            raise ExperimentError(f"data.name: {place}: {one_line(error)}") from error
        if has_card:
            raise ExperimentError(
                f"{place}: its card (README.md) does not say what to read: {one_line(error)}; "
                "data.name chooses a configuration"
            ) from error
        files = by_their_names(tables, place)  # names in capitals, or splits of several kinds
        return Found(sources_of(files, form, None, place), _notes_on_files(files, tables))

    resolved: Mapping[Any, Sequence[str]] = builder.config.data_files or {}
    files = {}
    for split, of_split in resolved.items():
        files[str(split)] = [(file, _name_in(path, file)) for file in map(Path, of_split)]
    is_of_card = builder.config.name != "default"
    if not is_of_card:
        files, others = of_known_kinds(files, form)
        tables += others
    used = names_in(files)
    if not all(kind_of(each, form) == "txt" for each in used):
        check_module(place, builder, used)

    # A card lists the files of each of its configurations; the others are not this one's.
    if is_of_card:
        tables = [each for each in tables if each[1] in used]
    elif ([*files] == ["train"] and len(tables) > 1) or are_called_otherwise(files):
        files = by_their_names([each for each in tables if kind_of(each[1], form)], place)
    files |= files_called(set(wanted) - files.keys(), files, tables)
    notes = _notes_on_files(files, tables)
    if is_of_card:
        for each, splits in in_several_splits(files):
            notes.append(f"{each} is in the splits {' and '.join(splits)}, as the card says")
    else:
        check_each_in_one_split(files, place)
    form = form_of_card(builder, used, form, place)
    return Found(sources_of(files, form, builder.info.features, place), notes)


def _is_pattern(path: Path) -> bool:
    """Whether `datasets` takes a path for a pattern, or for one within an archive."""
    return any(sign in str(path) for sign in ("*", "?", "[", "]", "::"))


def _notes_on_files(files: Files, tables: Sequence[tuple[Path, str]]) -> list[str]:
    """Which files of a folder are not read, and which make one split together."""
    used = names_in(files)
    notes = [
        f"ignored {name}: the rows are read from {shown_names(used, 4)}"
        for _, name in tables
        if name not in used
    ]
    for split, of_split in files.items():
        if len(of_split) > 1:
            names = [name for _, name in of_split]
            notes.append(
                f"the split {split} is read from {len(names)} files: {shown_names(names, 6)}"
            )
    return notes


def _nothing_to_read(
    path: Path, inside: Sequence[Path], columns: Sequence[str], parallel: Mapping[str, Any]
) -> str:
    """The sentence for a folder without data of a known kind."""
    source, target = columns[:2]
    names = [_name_in(path, file) for file in inside]
    shown = shown_names(names)
    if not names:
        return f"data.path: {path} doesn't contain any data files: it is empty"
    if parallel:
        split, files = next(iter(parallel.items()))
        column, there = next(iter(files.items()))
        other = target if column == source else source
        return (
            f"data.path: {path} holds {there.name}, but no {split}.{other} beside it; it holds "
            f"{shown}; of parallel text files data.source and data.target are the suffixes, and "
            f"they are {source!r} and {target!r}"
        )
    return (
        f"data.path: {path} doesn't contain any data files that can be read; it holds {shown}; "
        f"{KNOWN_KINDS}; parallel text files are called train.{source} and train.{target}"
    )


def _notes_beside_parallel(
    path: Path, parallel: Mapping[str, Mapping[str, Path]], columns: Sequence[str]
) -> list[str]:
    """Which files of a folder of parallel text files are not read."""
    notes = []
    for files in parallel.values():
        missing = [column for column in columns[:2] if column not in files]
        if not missing:
            continue
        for file in files.values():
            notes.append(f"ignored {file.name}: its other side, {', '.join(missing)}, is missing")
    for file in _files_in(path):
        if kind_of(file.name, Format()):
            notes.append(
                f"ignored {_name_in(path, file)}: the folder is read as parallel text files"
            )
    return notes


def one_line(error: BaseException) -> str:
    """An error's message in one line, shortened."""
    message = " ".join(str(error).split()) or type(error).__name__
    if len(message) > 300:
        message = f"{message[:297]}..."
    return message.rstrip(".")


def _files_in(folder: Path) -> list[Path]:
    """The files of a folder and the folders in it, hidden ones left out."""
    found = []
    known: set[Path] = set()  # a link may lead back to a folder above it
    for place, folders, names in os.walk(folder, followlinks=True):
        here = Path(place)
        known.add(here.resolve())
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and (here / name).resolve() not in known
        ]
        files = [here / name for name in names if not name.startswith(".")]
        found += [file for file in files if file.is_file()]
    return sorted(found)


def _name_in(folder: Path, file: Path) -> str:
    """The path of a file within a folder; its name where it lies elsewhere."""
    if not file.is_relative_to(folder):
        return printable(file.name)
    return printable(file.relative_to(folder).as_posix())


def printable(name: str) -> str:
    """A file's name as text: bytes of another encoding, as Python has them in it, are escaped."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
