"""A dataset of the hub or a local one in its place, its three splits, and the columns that a corpus wants of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnlab.data.corpus import SPLITS
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class HubDataset:
    """Where the rows come from.

    dataset: the id on the hub, such as `bentrevett/multi30k`.
    path: a folder in the layout of a hub dataset, a folder of parallel text files (`train.de` beside
        `train.en`: the columns are then `de` and `en`), or one file: json, jsonl, csv, tsv (unquoted) or
        parquet. It goes before `dataset`. A relative one starts at $DVC_ROOT, else at the current folder.
    name, revision: the configuration of the dataset and its branch, tag or commit; null is the default one.
    splits: for train, validation and test the name of a split of the dataset, or a fraction. Fractions are
        drawn at random from the split that `train` names, which keeps the rest; where `train` is a fraction
        itself, from the only split there is, else from the one named train.
    seed: of the fractions.
    """

    dataset: str | None
    path: str | None
    name: str | None
    revision: str | None
    splits: Mapping[str, str | float]
    seed: int

    def __post_init__(self) -> None:
        if self.dataset is not None and not _HUB_ID.fullmatch(self.dataset):
            raise ValueError(f"dataset must be an id of the hub, owner/name, got {self.dataset}; path takes local data")
        if set(self.splits) != set(SPLITS):
            raise ValueError(f"splits must give {', '.join(SPLITS)}, got {', '.join(self.splits) or 'nothing'}")
        for split, fraction in self._fractions.items():
            if not 0 < fraction < 1:
                raise ValueError(f"splits.{split} must be a split's name or a fraction between 0 and 1, got {fraction}")
        if sum(self._fractions.values()) > 1 + 1e-9:
            raise ValueError(f"splits must add up to at most 1, got {sum(self._fractions.values()):g}")

    @property
    def _fractions(self) -> dict[str, float]:
        return {split: value for split, value in self.splits.items() if not isinstance(value, str)}

    def load(self, columns: Mapping[str, str]) -> dict[str, datasets.Dataset]:
        """A dataset for each of `SPLITS`, with the wanted columns alone.

        columns: the two columns by their new names, which are settings of the corpus too: {"source": "de", ...}.
        """
        # `datasets` takes a second to import, which checking a config should not pay.
        from attnlab.data.hub_loading import load_pairs

        found = load_pairs(self.dataset, self.path, self.name, self.revision, *columns.values())
        chosen = {}
        for split, name in self.splits.items():
            if isinstance(name, str):
                chosen[split] = _named(found, split, name)
        if self._fractions:
            chosen |= self._drawn(found)
        return {split: _selected(chosen[split], str(self.splits[split]), columns) for split in SPLITS}

    def _drawn(self, found: dict[str, datasets.Dataset]) -> dict[str, datasets.Dataset]:
        """The splits that are fractions, and the training split where these are taken from it."""
        train = self.splits["train"]
        whole = train if isinstance(train, str) else next(iter(found)) if len(found) == 1 else "train"
        dataset = _named(found, "train", whole)
        order = np.random.default_rng(self.seed).permutation(len(dataset))
        drawn, start = {}, 0
        for split, fraction in sorted(self._fractions.items()):
            end = min(len(order), start + round(fraction * len(order)))
            drawn[split] = dataset.select(np.sort(order[start:end]))
            start = end
        if isinstance(train, str):
            drawn["train"] = dataset.select(np.sort(order[start:]))
        return drawn


def _named(found: dict[str, datasets.Dataset], split: str, name: str) -> datasets.Dataset:
    if name not in found:
        raise ExperimentError(
            f"data.splits.{split}: there is no split {name!r}; the splits are: {', '.join(found)}; a "
            "fraction such as 0.1 draws one from the training split"
        )
    return found[name]


def _selected(dataset: datasets.Dataset, name: str, columns: Mapping[str, str]) -> datasets.Dataset:
    """The columns alone, under their new names."""
    if any(column not in dataset.column_names for column in columns.values()):
        dataset = dataset.flatten()
    for key, column in columns.items():
        if column not in dataset.column_names:
            raise ExperimentError(
                f"data.{key}: there is no column {column!r} in split {name!r}; the columns are: "
                f"{', '.join(dataset.column_names)}"
            )
    dataset = dataset.select_columns(list(columns.values()))
    # By way of names that no column has: the corpus may call its target `source`.
    dataset = dataset.rename_columns({column: f"\0{key}" for key, column in columns.items()})
    return dataset.rename_columns({f"\0{key}": key for key in columns})
