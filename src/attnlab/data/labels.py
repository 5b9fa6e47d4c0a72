"""Labels of a classifier's sentences, as they are written and as classes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attnlab.data.corpus import visible
from attnlab.errors import ExperimentError, show

if TYPE_CHECKING:
    import datasets

Label = int | str

# The spelling of a class number: no sign, no leading zero, and small enough for 64 bits.
_PLAIN_INTEGER = re.compile(r"0|[1-9][0-9]{0,17}")
_NO_LABEL = "-1"  # as `datasets` writes it, where labels have names


def with_typed_labels(
    splits: Mapping[str, datasets.Dataset],
    names: Sequence[str] | None,
    are_numbers: bool = False,
) -> dict[str, datasets.Dataset]:
    """The splits with typed labels: whole numbers if every cell of all splits is one, else text.

    splits: with labels as text; None and blank cells have no label.
    names: of the labels 0, 1, ...; the column `label` becomes a `ClassLabel`. A cell may hold a
        name or a number.
    are_numbers: whether cells with names hold numbers alone, as typed columns do.

    Raises ExperimentError for a label that is not one of the names, or that is the name of one
    class and the number of another.
    """
    import datasets  # a second that checking a config should not pay

    written = {}
    for split, rows in splits.items():
        written[split] = [_trimmed(cell) for cell in rows["label"]]

    if names is not None:
        if not are_numbers:
            _check_names_are_no_numbers(written, names)
        numbers = {split: _numbers_of_names(cells, names) for split, cells in written.items()}
        feature: Any = datasets.ClassLabel(names=list(names))
    elif all(_are_numbers(cells) for cells in written.values()):
        numbers = {split: _as_numbers(cells) for split, cells in written.items()}
        feature = datasets.Value("int64")
    else:
        return dict(splits)

    typed = {}
    for split, rows in splits.items():
        without = rows.remove_columns("label")
        typed[split] = without.add_column("label", numbers[split], feature=feature)
    return typed


def notes_on_labels(cells: Iterable[str | None]) -> Iterator[str]:
    """A sentence for labels that look alike and are different classes."""
    alike: dict[str, dict[str, None]] = {}
    for cell in dict.fromkeys(map(_trimmed, cells)):
        if cell is not None:
            alike.setdefault(_as_seen(cell), {})[cell] = None
    for labels in alike.values():
        if len(labels) > 1:
            written = ", ".join(ascii(label) for label in labels)
            yield (
                f"the labels {written} look alike or are one number, and are classes of their own; "
                "write them alike"
            )


def _as_seen(label: str) -> str:
    """A label without characters that nobody sees; a number in its shortest spelling."""
    seen = visible(label).strip()
    try:
        return f"{float(seen):.15g}"
    except ValueError:
        return seen


def _trimmed(cell: str | None) -> str | None:
    """A cell without surrounding white space; None for a blank one."""
    if cell is None:
        return None
    return cell.strip() or None


def _are_numbers(cells: Sequence[str | None]) -> bool:
    return all(cell is None or _PLAIN_INTEGER.fullmatch(cell) for cell in cells)


def _as_numbers(cells: Sequence[str | None]) -> list[int | None]:
    return [None if cell is None else int(cell) for cell in cells]


def _check_names_are_no_numbers(
    written: Mapping[str, Sequence[str | None]], names: Sequence[str]
) -> None:
    """Raise ExperimentError where a cell is the name of one class and the number of another."""
    others = {_NO_LABEL: "no label"}  # than a name: {cell: what it means}
    for number, name in enumerate(names):
        if name != str(number):
            others[str(number)] = f"the number of {name!r}"
    for cell in dict.fromkeys(cell for cells in written.values() for cell in cells):
        if cell in names and cell in others:
            raise ExperimentError(
                f"data.label: {cell!r} is the name of a label and also {others[cell]}, for labels "
                f"are numbered from 0 ({show(list(names))}); give names that are no numbers by "
                "data.label_names, or remove the names from the dataset"
            )


def _numbers_of_names(cells: Sequence[str | None], names: Sequence[str]) -> list[int | None]:
    """The class number of each cell, which holds a name or a number; None for no label."""
    known: dict[str | None, int | None] = {None: None, _NO_LABEL: None}
    known |= {name: number for number, name in enumerate(names)}
    known |= {str(number): number for number in range(len(names))}
    for cell in cells:
        if cell not in known:
            raise ExperimentError(
                f"data.label: a row has the label {cell!r}, but the dataset names its labels "
                f"{show(list(names))}, numbered from 0; mend the row"
            )
    return [known[cell] for cell in cells]


def label_of(value: Any, tidy: Callable[[str], str]) -> Label | None:
    """A raw value as a label, or None for a missing one.

    Raises ExperimentError if the value cannot be a label.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return tidy(value).strip() or None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)  # a column of whole numbers with a gap comes as fractions
    raise ExperimentError(
        f"data.label: a label must be a whole number, true or false, or text, got {value!r}; "
        "data.label names the column"
    )
