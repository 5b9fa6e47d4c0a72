"""Which classes a labelled corpus has, what they are called, and which of them a raw label means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from attnlab.errors import ExperimentError

Label = int | str

MOST_SHOWN = 8


class Classes:
    """The labels of the training split: whole numbers by size, or else text in its alphabetical order.

    names: of the classes, in the order of their numbers.
    """

    def __init__(self, labels: Iterable[Label], names: list[str] | None, own_names: list[str] | None) -> None:
        """
        labels: all that occur in the training split.
        names: the config's names of the labels 0, 1, ...; None where it has none.
        own_names: the dataset's own names of the labels 0, 1, ...

        Raises ExperimentError where there are fewer than two classes, or where the names do not fit.
        """
        self._labels: list[Label] = sorted(set(labels))  # a column has one type
        if len(self._labels) < 2:
            raise ExperimentError(
                f"data.label: a classifier needs at least two classes, but every label of the training split "
                f"is {self._labels[0]!r}; choose another column by data.label"
            )
        if names is not None and self._labels != list(range(len(names))):
            raise ExperimentError(
                f"data.label_names has {len(names)} names for the labels 0 to {len(names) - 1}, but the labels of the "
                f"training split are {shown(self._labels)}; give each of 0, 1, ... its name, or null"
            )
        if names is None and own_names is not None:
            known: dict[Label, str] = dict(enumerate(own_names))
            names = [known.get(label, str(label)) for label in self._labels]
        self.names = names or [str(label) for label in self._labels]
        self._numbers = {label: number for number, label in enumerate(self._labels)}

    def number(self, label: Label, split: str) -> int:
        """The number of the class; raises ExperimentError where the training split never had this label."""
        if label not in self._numbers:
            raise ExperimentError(
                f"data.label: the {split} split has the label {label!r}, which no sentence of the training split has "
                f"(it has {shown(self._labels)}), so that no model can learn it; leave such rows out, or choose other "
                "data.splits"
            )
        return self._numbers[label]


def label_of(value: Any, tidy: Callable[[str], str]) -> Label | None:
    """A raw value as a label; None where there is none.

    Raises ExperimentError where the value can be no label.
    """
    if value is None or isinstance(value, str):
        return tidy(value).strip() or None if value is not None else None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)  # a column of whole numbers with a gap comes as fractions
    raise ExperimentError(
        f"data.label: a label must be a whole number, true or false, or text, got {value!r}; data.label names "
        "the column"
    )


def shown(labels: list[Label]) -> str:
    texts = [repr(label) for label in labels[:MOST_SHOWN]]
    more = [f"and {len(labels) - MOST_SHOWN} more"] if len(labels) > MOST_SHOWN else []
    return ", ".join([*texts, *more])
