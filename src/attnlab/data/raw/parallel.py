"""Parallel text files, one for each side, in which line n is the same sentence.

They are called `train.de` and `train.en`, or as OpenNMT has it `src-train.txt` and `tgt-train.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from attnlab.data.raw.lines import read_lines, unpacked_name, without_end
from attnlab.data.raw.rows import Format, MissingColumnError, Row, Wanted
from attnlab.errors import ExperimentError

Sides = dict[str, Path]
"""Column -> its file."""


def parallel_files(folder: Path, columns: Sequence[str], place: str) -> dict[str, Sides]:
    """{split: the files of those columns that it has}, in the order of the splits' names.

    Raises ExperimentError where a column of a split has two files.
    """
    splits: dict[str, Sides] = {}
    for path in sorted(folder.iterdir()):
        is_of_corpus = not path.name.startswith(".") and not path.name.lower().startswith("readme.")
        if not path.is_file() or not is_of_corpus:
            continue
        for column in dict.fromkeys(columns):
            split = _split_of(unpacked_name(path.name), column)
            if split is None:
                continue
            sides = splits.setdefault(split, {})
            if column in sides:
                raise ExperimentError(
                    f"{place}: {sides[column].name} and {path.name} are one file twice; remove one"
                )
            sides[column] = path
    return splits


def _split_of(name: str, column: str) -> str | None:
    """`train` of `train.de` and of `de-train.txt`."""
    by_suffix = re.fullmatch(rf"(.+)\.{re.escape(column)}", name)
    as_of_opennmt = re.fullmatch(rf"{re.escape(column)}-(.+)\.txt", name)
    found = by_suffix or as_of_opennmt
    return found[1] if found else None


def read_parallel(files: Mapping[str, Path], wanted: Wanted, form: Format) -> Iterator[Row]:
    """The lines of each wanted column side by side; an optional one without a file has none.

    Raises MissingColumnError for a required column without a file, and ExperimentError where the
    files have different numbers of lines.
    """
    name = files[wanted.required[0]].name
    for column in wanted.required:
        if column not in files:
            raise MissingColumnError(name, column, list(files))
    present = [column for column in wanted.columns if column in files]
    readers = [
        read_lines(files[column], f"data.path: {files[column]}", form.encoding)
        for column in present
    ]
    for number, lines in enumerate(zip_longest(*readers), start=1):
        if None in lines:
            raise ExperimentError(_unequal(files, present, readers, lines, number))
        cells = dict(zip(present, map(without_end, lines), strict=True))
        yield f"{name}, line {number}", [cells.get(column) for column in wanted.columns]


def _unequal(
    files: Mapping[str, Path],
    present: Sequence[str],
    readers: Sequence[Iterator[str]],
    lines: Sequence[str | None],
    number: int,
) -> str:
    """The sentence for files of which some have ended before this line."""
    counts = {}
    for column, reader, line in zip(present, readers, lines, strict=True):
        if line is None:
            counts[column] = number - 1
        else:
            lines_left = sum(1 for _ in reader)
            counts[column] = number + lines_left

    first = present[0]
    other = next(column for column in present if counts[column] != counts[first])
    return (
        f"data.path: {files[first]} has {counts[first]} lines, but {files[other]} has "
        f"{counts[other]}; give files in which the same line is the same sentence"
    )
