"""Corpora that `datasets` reads: sentence pairs or labelled sentences, from the Hugging Face hub or local files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from babel import Locale, UnknownLocaleError
from pydantic import Field

from attnlab.data.corpus import SPLITS, BleuTokenize, Cleaning, Corpus, RougeUnit, SentenceCleaning
from attnlab.data.pharaoh import with_links
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

Text = Annotated[str, Field(min_length=1)]


@dataclass
class HubDataset:
    """A dataset of the hub, or a local `path` in its place.

    dataset: the id on the hub, such as `bentrevett/multi30k`.
    path: a folder in the layout of a hub dataset, a folder of parallel text files (`train.de` beside
        `train.en`: the columns are then `de` and `en`), or one file: json, jsonl, csv, tsv (unquoted) or
        parquet. It goes before `dataset`. A relative one starts at $DVC_ROOT, else at the current folder.
    name: the configuration of the dataset; null is the default one.
    revision: its branch, tag or commit; null is the default one.
    splits: for train, validation and test the name of a split of the dataset, or a fraction. Fractions are
        drawn at random from the split that `train` names, which keeps the rest; where `train` is a fraction
        itself, from the only split there is, else from the one named train.
    seed: of the fractions.
    limit: rows of each split that are taken, the first ones, for a quick look; null takes all.
    """

    dataset: Text | None
    path: Text | None
    name: Text | None
    revision: Text | None
    splits: dict[str, str | float]
    seed: Annotated[int, Field(ge=0)]
    limit: Annotated[int, Field(ge=1)] | None

    def __post_init__(self) -> None:
        if set(self.splits) != set(SPLITS):
            raise ValueError(f"splits must give {', '.join(SPLITS)}, got {', '.join(self.splits) or 'nothing'}")
        if sum(self._fractions.values()) > 1 + 1e-9:
            raise ValueError(f"splits must add up to at most 1, got {sum(self._fractions.values()):g}")

    @property
    def _fractions(self) -> dict[str, float]:
        return {split: value for split, value in self.splits.items() if not isinstance(value, str)}

    def _read(self, **columns: str | None) -> dict[str, datasets.Dataset]:
        """The splits of the dataset that `splits` needs, by their own names, with the wanted columns alone.

        columns: settings by their new names, source="de", ...; None is no column. The first two must be in every
            split, the others in one of them.
        """
        # `datasets` is slow to import, and not needed to check a config.
        from attnlab.data.hub_loading import load_splits

        wanted = {key: column for key, column in columns.items() if column is not None}
        path = None if self.path is None else resolve(self.path)
        found = load_splits(self.dataset, path, self.name, self.revision, *wanted.values())
        for split, name in self._names(list(found)).items():
            if name not in found:
                raise ExperimentError(
                    f"data.splits.{split}: there is no split {name!r}; the splits are: {', '.join(found)}; a "
                    "fraction such as 0.1 draws one from the training split"
                )
        return _selected({name: found[name] for name in self._names(list(found)).values()}, wanted)

    def _names(self, found: list[str]) -> dict[str, str]:
        """The split of the dataset that each of ours is, or that the fractions are drawn from (as `train`)."""
        named = {split: name for split, name in self.splits.items() if isinstance(name, str)}
        whole = {"train": found[0] if len(found) == 1 else "train"} if self._fractions else {}
        return whole | named

    def _split(self, read: dict[str, datasets.Dataset]) -> dict[str, datasets.Dataset]:
        """A dataset for each of `SPLITS`; read: what `_read` gives."""
        chosen = {split: read[name] for split, name in self._names(list(read)).items()}
        if self._fractions:
            whole = chosen["train"]
            order = np.random.default_rng(self.seed).permutation(len(whole))
            start = 0
            for split, fraction in sorted(self._fractions.items()):
                end = min(len(order), start + round(fraction * len(order)))
                chosen[split] = whole.select(np.sort(order[start:end]))
                start = end
            if isinstance(self.splits["train"], str):
                chosen["train"] = whole.select(np.sort(order[start:]))
        return {split: chosen[split] for split in SPLITS}


@dataclass
class HubCorpus(HubDataset, Corpus):
    """Sentence pairs from the Hugging Face hub or local files (see `HubDataset`).

    source, target: the column; a dot goes into a nested one (`translation.de`).
    alignments: a column of gold alignments in Pharaoh format (see `attnlab.data.pharaoh`); null is none.
    possible_alignments: a column of further links, all of them possible; null is none.
    first_word: the number of a sentence's first word in these columns.
    """

    source: Text
    target: Text
    alignments: Text | None
    possible_alignments: Text | None
    first_word: Annotated[int, Field(ge=0, le=1)]
    bleu_tokenize: BleuTokenize
    rouge: RougeUnit | None
    cleaning: Cleaning
    tokenizer: TokenizerTrainer
    source_tokenizer: TokenizerTrainer | None = None
    target_tokenizer: TokenizerTrainer | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.source_language, self.target_language = _language(self.source), _language(self.target)

    def load(self) -> dict[str, datasets.Dataset]:
        gold = {"alignments": self.alignments, "possible_alignments": self.possible_alignments}
        read = self._read(source=self.source, target=self.target, **gold)
        if self.alignments is not None:
            read = {name: with_links(rows, name, self.first_word) for name, rows in read.items()}
        return self._split(read)


@dataclass
class Scan(HubCorpus):
    """SCAN (Lake and Baroni 2018), commands and the actions they mean.

    split: what the test split differs in; `path` is the folder that holds `scan_<split>`.
    """

    split: Literal["simple", "length", "jump", "turn_left"] = "simple"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = self.path and f"{self.path}/scan_{self.split}"


@dataclass
class Sigmorphon2020(HubCorpus):
    """Words and their phones, from task 1 of SIGMORPHON 2020 (Gorman et al. 2020).

    language: its code of three letters, such as `kor`; `path` is the folder that holds `sigmorphon2020_<language>`.
    """

    language: Text = "kor"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = self.path and f"{self.path}/sigmorphon2020_{self.language}"


@dataclass
class LabelledCorpus(HubDataset):
    """Labelled sentences from the Hugging Face hub or local files (see `HubDataset`).

    text: the column; a dot goes into a nested one.
    label: its column; whole numbers, true and false, or text. A row without a label is dropped.
    label_names: names of the labels 0, 1, ..., in this order; null takes those that the dataset brings with it,
        else the labels as they are written.
    """

    text: Text
    label: Text
    label_names: Annotated[list[Text], Field(min_length=2)] | None
    cleaning: SentenceCleaning
    tokenizer: TokenizerTrainer

    def load(self) -> dict[str, datasets.Dataset]:
        """A dataset for each of train, validation and test, with the columns `text` and `label`, as they come."""
        return self._split(self._read(text=self.text, label=self.label))


def resolve(path: str) -> Path:
    """The absolute path; a relative one starts where the project is, also in the copies that DVC's queue makes."""
    given = Path(path).expanduser()
    return given if given.is_absolute() else Path(os.environ.get("DVC_ROOT") or Path.cwd()) / given


def raw_state(path: str | None) -> str:
    """A fingerprint of the local raw data that `data.path` names: names, sizes and times; empty for None."""
    if path is None:
        return ""
    place = resolve(path)
    files = [file for file in (place, *sorted(place.rglob("*"))) if file.is_file()]
    return "\n".join(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)


def _selected(found: dict[str, datasets.Dataset], columns: Mapping[str, str]) -> dict[str, datasets.Dataset]:
    """The columns alone, under their new names."""
    flat = {
        name: rows if {*columns.values()} <= {*rows.column_names} else rows.flatten() for name, rows in found.items()
    }
    for place, (key, column) in enumerate(columns.items()):
        without = [name for name, rows in flat.items() if column not in rows.column_names]
        if without and (place < 2 or len(without) == len(flat)):
            raise ExperimentError(
                f"data.{key}: there is no column {column!r} in split {without[0]!r}; the columns are: "
                f"{', '.join(flat[without[0]].column_names)}"
            )
    chosen = {}
    for name, rows in flat.items():
        there = {column: key for key, column in columns.items() if column in rows.column_names}
        chosen[name] = rows.select_columns(list(there)).rename_columns(there)
    return chosen


def _language(column: str) -> str | None:
    """`translation.de` -> `de`, where the last part names a language."""
    code = column.rsplit(".", 1)[-1]
    try:
        return str(Locale.parse(code, sep="-" if "-" in code else "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        return None
