"""Any parallel corpus that `datasets` reads: from the Hugging Face hub, a local folder or files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import numpy as np
from babel import Locale, UnknownLocaleError
from pydantic import Field

from attnlab.composition.error import ExperimentError
from attnlab.data.cleaning import Cleaning
from attnlab.data.corpus import SPLITS, BleuTokenize, Corpus
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")

Text = Annotated[str, Field(min_length=1)]


class HubCorpus(Corpus):
    """A dataset of the hub, or a local `path` in its place.

    dataset: the id on the hub, such as `bentrevett/multi30k`.
    path: a folder in the layout of a hub dataset, a folder of parallel text files (`train.de` beside
        `train.en`: the columns are then `de` and `en`), or one file: json, jsonl, csv, tsv (unquoted) or
        parquet. It goes before `dataset`. A relative one starts at $DVC_ROOT, else at the current folder.
    name, revision: the configuration of the dataset and its branch, tag or commit; null is the default one.
    splits: for train, validation and test the name of a split of the dataset, or a fraction. Fractions are
        drawn at random from the split that `train` names, which keeps the rest; where `train` is a fraction
        itself, from the only split there is, else from the one named train.
    source, target: columns; a dot goes into a nested one (`translation.de`).
    """

    def __init__(
        self,
        dataset: Text | None,
        path: Text | None,
        name: Text | None,
        revision: Text | None,
        splits: dict[str, str | float],
        source: Text,
        target: Text,
        seed: Annotated[int, Field(ge=0)],
        bleu_tokenize: BleuTokenize,
        cleaning: Cleaning,
        tokenizer: TokenizerTrainer,
    ) -> None:
        if dataset is not None and not _HUB_ID.fullmatch(dataset):
            raise ValueError(f"dataset must be an id of the hub, owner/name, got {dataset}; path takes local data")
        if source == target:
            raise ValueError(f"source and target must be two columns, got {source} for both")
        if set(splits) != set(SPLITS):
            raise ValueError(f"splits must give {', '.join(SPLITS)}, got {', '.join(splits) or 'nothing'}")
        fractions = {split: value for split, value in splits.items() if not isinstance(value, str)}
        for split, fraction in fractions.items():
            if not 0 < fraction < 1:
                raise ValueError(f"splits.{split} must be a split's name or a fraction between 0 and 1, got {fraction}")
        if sum(fractions.values()) > 1 + 1e-9:
            raise ValueError(f"splits must add up to at most 1, got {sum(fractions.values()):g}")
        self.dataset, self.path, self.name, self.revision = dataset, path, name, revision
        self.splits, self.fractions, self.source, self.target = splits, fractions, source, target
        self.seed, self.bleu_tokenize, self.cleaning, self.tokenizer = (
            seed,
            bleu_tokenize,
            cleaning,
            tokenizer,
        )
        self.source_language, self.target_language = _language(source), _language(target)

    def load(self) -> dict[str, datasets.Dataset]:
        # `datasets` takes a second to import, which checking a config should not pay.
        from attnlab.data.hub_loading import load_pairs

        found = load_pairs(self.dataset, self.path, self.name, self.revision, self.source, self.target)
        chosen = {}
        for split, name in self.splits.items():
            if isinstance(name, str):
                chosen[split] = self._named(found, split, name)
        if self.fractions:
            chosen |= self._drawn(found)
        return {split: self._pairs(chosen[split], str(self.splits[split])) for split in SPLITS}

    def _named(self, found: dict[str, datasets.Dataset], split: str, name: str) -> datasets.Dataset:
        if name not in found:
            raise ExperimentError(
                f"data.splits.{split}: there is no split {name!r}; the splits are: {', '.join(found)}; a "
                "fraction such as 0.1 draws one from the training split"
            )
        return found[name]

    def _drawn(self, found: dict[str, datasets.Dataset]) -> dict[str, datasets.Dataset]:
        """The splits that are fractions, and the training split where these are taken from it."""
        train = self.splits["train"]
        whole = train if isinstance(train, str) else next(iter(found)) if len(found) == 1 else "train"
        dataset = self._named(found, "train", whole)
        order = np.random.default_rng(self.seed).permutation(len(dataset))
        drawn, start = {}, 0
        for split, fraction in sorted(self.fractions.items()):
            end = min(len(order), start + round(fraction * len(order)))
            drawn[split] = dataset.select(np.sort(order[start:end]))
            start = end
        if isinstance(train, str):
            drawn["train"] = dataset.select(np.sort(order[start:]))
        return drawn

    def _pairs(self, dataset: datasets.Dataset, name: str) -> datasets.Dataset:
        """The two columns alone, as `source` and `target`."""
        if any(column not in dataset.column_names for column in (self.source, self.target)):
            dataset = dataset.flatten()
        for key in ("source", "target"):
            column = getattr(self, key)
            if column not in dataset.column_names:
                raise ExperimentError(
                    f"data.{key}: there is no column {column!r} in split {name!r}; the columns are: "
                    f"{', '.join(dataset.column_names)}"
                )
        dataset = dataset.select_columns([self.source, self.target])
        # By way of names that no column has: the corpus may call its target `source`.
        dataset = dataset.rename_columns({self.source: "\0source", self.target: "\0target"})
        return dataset.rename_columns({"\0source": "source", "\0target": "target"})


def _language(column: str) -> str | None:
    """`translation.de` -> `de`, where the last part names a language."""
    code = column.rsplit(".", 1)[-1]
    try:
        return str(Locale.parse(code, sep="-" if "-" in code else "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        return None
