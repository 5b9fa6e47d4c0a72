"""Columns of features (tags, a language) that stand before the source, each word a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlab.data.corpus import FAULT
from attnlab.errors import show

if TYPE_CHECKING:
    import datasets

_MARKS = ("<", ">")  # around a feature


def with_features(
    rows: datasets.Dataset, columns: Sequence[str], names: Sequence[str]
) -> datasets.Dataset:
    """The rows with the words of some columns before the source: `<pos=V> <num=PL> gehen`.

    A missing cell adds nothing. A row whose features have a `<` or `>` of their own is unusable.

    rows: with the columns `source`, FAULT and those of the features.
    columns: the columns, in the order in which they stand before the source.
    names: theirs in the file, for messages.
    """
    sources: list[str | None] = []
    faults: list[str | None] = []
    for row in rows:
        fault = row[FAULT]
        marked = []
        for column, name in zip(columns, names, strict=True):
            for word in (row[column] or "").split():
                if any(mark in word for mark in _MARKS):
                    fault = fault or f"{name!r} has {show(word, 60)}, a feature with < or >"
                marked.append(f"<{word}>")
        source = row["source"]
        has_text = source is not None and source.strip()
        sources.append(" ".join([*marked, source]) if has_text else source)
        faults.append(fault)
    return _replaced(rows.remove_columns(list(columns)), {"source": sources, FAULT: faults})


def _replaced(rows: datasets.Dataset, columns: dict[str, list[str | None]]) -> datasets.Dataset:
    """The rows with other texts in some columns."""
    features = {name: rows.features[name] for name in columns}
    others = rows.remove_columns(list(columns))
    for name, cells in columns.items():
        others = others.add_column(name, cells, feature=features[name])
    return others
