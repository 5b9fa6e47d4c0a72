"""Which files make which split, by the words in their names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from attnlab.data.raw.lines import unpacked_name
from attnlab.data.raw.rows import Format
from attnlab.data.raw.sources import kind_of
from attnlab.errors import ExperimentError

# As `datasets` reads the names of files, but in any case.
_SPLIT_WORDS = {
    "train": "train", "training": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
    "test": "test", "testing": "test", "eval": "test", "evaluation": "test",
}  # fmt: skip

Files = Mapping[str, Sequence[tuple[Path, str]]]
"""Split -> its files, each with its name within the dataset."""


def by_their_names(
    tables: Sequence[tuple[Path, str]], place: str
) -> dict[str, list[tuple[Path, str]]]:
    """The files of each split, by the words in their names, whatever the case.

    The last of several words counts, which is of the file and not of its folder; a file that itself
    names several splits is refused. Files that name no split are the training split where
    no file names one and all are of one kind.
    """
    splits: dict[str, list[tuple[Path, str]]] = {}
    for table in tables:
        of_file = dict.fromkeys(_splits_in(table[1].rpartition("/")[2]))
        for split in of_file or _splits_in(table[1])[-1:]:
            splits.setdefault(split, []).append(table)
    check_each_in_one_split(splits, place)
    if splits:
        return splits
    kinds = {unpacked_name(name).rpartition(".")[2].lower() for _, name in tables}
    if len(kinds) > 1:
        raise ExperimentError(
            f"{place} holds files of several kinds, none of which names a split: "
            f"{', '.join(sorted(name for _, name in tables))}; give data.path the file itself, or "
            "call it train"
        )
    return {"train": list(tables)}


def files_called(
    names: Collection[str], files: Files, tables: Sequence[tuple[Path, str]]
) -> dict[str, list[tuple[Path, str]]]:
    """The splits of these names: files that are called so and that no other split has."""
    used = names_in(files)
    found: dict[str, list[tuple[Path, str]]] = {}
    for table in tables:
        stem = unpacked_name(table[0].name).rpartition(".")[0]
        if stem in names and table[1] not in used:
            found.setdefault(stem, []).append(table)
    return found


def of_known_kinds(
    files: Files, form: Format
) -> tuple[dict[str, list[tuple[Path, str]]], list[tuple[Path, str]]]:
    """The files that can be read, by split, and the others, such as a `train.csv.bak`.

    A split of which nothing can be read keeps its files, for the sentence that says so.
    """
    known: dict[str, list[tuple[Path, str]]] = {}
    others = []
    for split, of_split in files.items():
        readable = [each for each in of_split if kind_of(each[1], form)]
        known[split] = readable or list(of_split)
        others += [each for each in of_split if readable and each not in readable]
    return known, others


def are_called_otherwise(files: Files) -> bool:
    """Whether a file is in another split than the one that its own name says."""
    for split, of_split in files.items():
        for _, name in of_split:
            own = set(_splits_in(name.rpartition("/")[2]))
            if len(own) == 1 and split not in own:
                return True
    return False


def in_several_splits(files: Files) -> Iterator[tuple[str, list[str]]]:
    """The name of each file that several splits have, and these splits."""
    splits_of: dict[str, list[str]] = {}
    for split, of_split in files.items():
        for _, name in of_split:
            splits_of.setdefault(name, []).append(split)
    for name, splits in splits_of.items():
        if len(splits) > 1:
            yield name, splits


def check_each_in_one_split(files: Files, place: str) -> None:
    """Raise ExperimentError for a file that would be several splits."""
    for name, splits in in_several_splits(files):
        raise ExperimentError(
            f"{place}: {name} names the splits {' and '.join(splits)}, and would be all of them; "
            "give it the name of one, or give data.path the file and fractions to data.splits"
        )


def _splits_in(name: str) -> list[str]:
    """The splits that the words of a name stand for, in their order."""
    words = re.split(r"[^a-z]+", name.lower())
    return [_SPLIT_WORDS[word] for word in words if word in _SPLIT_WORDS]


def names_in(files: Files) -> list[str]:
    return [name for of_split in files.values() for _, name in of_split]
