"""Corpora of sentence pairs or labelled sentences from the Hugging Face hub or local files."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from babel import Locale, UnknownLocaleError
from pydantic import Field

from attnlab.data.corpus import (
    FAULT,
    SPLITS,
    BleuTokenize,
    Cleaning,
    Corpus,
    RougeUnit,
    SentenceCleaning,
    SentenceCorpus,
)
from attnlab.data.features import with_features
from attnlab.data.labels import notes_on_labels, with_typed_labels
from attnlab.data.pharaoh import with_links
from attnlab.data.raw import SEPARATOR_NAMES, is_text_encoding
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.errors import ExperimentError
from attnlab.files import project_path

if TYPE_CHECKING:
    import datasets

    from attnlab.data.raw.loading import RawData

Text = Annotated[str, Field(min_length=1)]


@dataclass
class HubDataset:
    """A dataset of the hub, or a local `path` in its place.

    dataset: the id on the hub, such as `bentrevett/multi30k`.
    path: a folder in the layout of a hub dataset, a folder of parallel text files (`train.de`
        beside `train.en`: the columns are then `de` and `en`), or one file: json, jsonl, csv, tsv
        (unquoted) or parquet. It goes before `dataset`. A relative one starts at $DVC_ROOT, else at
        the current folder. Every cell is read as the text that stands there; numbers are not
        interpreted.
    name: the configuration of the dataset; null is the default one.
    revision: its branch, tag or commit; null is the default one.
    splits: for train, validation and test the name of a split of the dataset, or a fraction. A file
        of a local folder in whose name `datasets` sees no split is the split of its own name.
        Fractions are drawn at random from the split that `train` names, which keeps the rest; where
        `train` is a fraction itself, from the only split there is, else from the one named train.
    seed: of the fractions.
    limit: rows of each split that are taken, the first ones, for a quick look; null takes all.
    columns: the names of the columns of a csv, tsv or txt table whose first line is a row already;
        null takes the first line for them.
    separator: between the fields of a table: one character, or `comma`, `semicolon`, `tab`, `pipe`,
        `space`; null is a comma in csv and a tab in tsv.
    encoding: of all text files, such as cp949, latin-1 or utf-16; null is UTF-8.
    """

    dataset: Text | None
    path: Text | None
    name: Text | None
    revision: Text | None
    splits: dict[str, str | float]
    seed: Annotated[int, Field(ge=0)]
    limit: Annotated[int, Field(ge=1)] | None
    columns: Annotated[list[Text], Field(min_length=2)] | None
    separator: Text | None
    encoding: Text | None

    def __post_init__(self) -> None:
        self.notes: Sequence[str] = ()
        if self.separator is not None and len(_separator(self.separator)) != 1:
            words = ", ".join(SEPARATOR_NAMES)
            raise ValueError(
                f"separator must be one character, or one of {words}, got {self.separator!r}"
            )
        if self.encoding is not None and not is_text_encoding(self.encoding):
            raise ValueError(
                "encoding must name an encoding of text, such as cp949 or utf-16, got "
                f"{self.encoding!r}"
            )
        if set(self.splits) != set(SPLITS):
            raise ValueError(
                f"splits must give {', '.join(SPLITS)}, got {', '.join(self.splits) or 'nothing'}"
            )
        if sum(self._fractions.values()) > 1 + 1e-9:
            raise ValueError(
                f"splits must add up to at most 1, got {sum(self._fractions.values()):g}"
            )

    @property
    def _fractions(self) -> dict[str, float]:
        return {split: value for split, value in self.splits.items() if not isinstance(value, str)}

    def _read(
        self, optional: Collection[str] = (), **columns: str | None
    ) -> tuple[RawData, dict[str, datasets.Dataset]]:
        """The raw data, and the splits of the dataset that `splits` needs, by their own names.

        They have the wanted columns alone, as text.

        columns: settings by their new names, source="de", ...; None is no column. They must be in
            every file.
        optional: of these the new names of those that need be in one split alone.
        """
        # `datasets` is slow to import, and not needed to check a config.
        from attnlab.data.raw.loading import RawData
        from attnlab.data.raw.rows import Format

        wanted = {key: column for key, column in columns.items() if column is not None}
        path = None if self.path is None else raw_data_path(self.path)
        separator = None if self.separator is None else _separator(self.separator)
        form = Format(self.columns, separator, self.encoding)
        named = [split for split in self.splits.values() if isinstance(split, str)]
        raw = RawData(self.dataset, path, self.name, self.revision, wanted, form, named, optional)

        names_of_splits = self._names(raw.splits)
        for split, name in names_of_splits.items():
            if name not in raw.splits:
                remedy = "the name of one of them takes that split"
                if name != names_of_splits["train"]:
                    draws = f"data.splits.{split}=0.1 draws a tenth of the training split"
                    remedy = f"{draws}, and a name takes that split"
                raise ExperimentError(
                    f"data.splits.{split}: there is no split {name!r}; the splits are: "
                    f"{', '.join(raw.splits)}; {remedy}"
                )
        different_names = dict.fromkeys(names_of_splits.values())
        read = {name: _read_split(raw, name, wanted) for name in different_names}

        for key in list(wanted)[2:]:
            _check_column(key, wanted[key], read, is_optional=key in optional)
        unused = [split for split in raw.splits if split not in read]
        if unused:
            raw.notes.append(
                f"of the dataset's splits {', '.join(unused)} is not used; data.splits says which "
                "are"
            )
        self.notes = raw.notes
        return raw, read

    def _names(self, found: list[str]) -> dict[str, str]:
        """{split: the dataset's split that it is, or from which its fraction is drawn}.

        The fractions are drawn from the split under the key `train`.
        """
        named = {split: name for split, name in self.splits.items() if isinstance(name, str)}
        if not self._fractions:
            return named
        only_split_or_train = found[0] if len(found) == 1 else "train"
        return {"train": only_split_or_train, **named}

    def _split(self, read: dict[str, datasets.Dataset]) -> dict[str, datasets.Dataset]:
        """A dataset for each of `SPLITS`; read: what `_read` gives."""
        names_of_splits = self._names(list(read))
        chosen = {split: read[name] for split, name in names_of_splits.items()}
        if self._fractions:
            whole = chosen["train"]
            order = np.random.default_rng(self.seed).permutation(len(whole))
            start = 0
            for split, fraction in sorted(self._fractions.items()):
                end = min(len(order), start + round(fraction * len(order)))
                if end == start:
                    raise ExperimentError(
                        f"data.splits.{split}: {fraction:g} of {len(order)} row(s) is no row; "
                        "choose a larger fraction, or give more rows"
                    )
                chosen[split] = whole.select(np.sort(order[start:end]))
                start = end
            # A training split with a name of its own keeps the rest.
            if isinstance(self.splits["train"], str):
                chosen["train"] = whole.select(np.sort(order[start:]))
        return {split: chosen[split] for split in SPLITS}


@dataclass
class HubCorpus(HubDataset, Corpus):
    """Sentence pairs from the Hugging Face hub or local files (see `HubDataset`).

    source, target: the column; a dot goes into a nested one (`translation.de`).
    alignments: a column of gold alignments in Pharaoh format (see `attnlab.data.pharaoh`); null is
        none.
    possible_alignments: a column of further links, all of them possible; null is none.
    first_word: the number of a sentence's first word in these columns.
    features: columns whose words stand before the source as `<word>`, such as tags or a language;
        a null cell adds nothing. `data/tokenizer=tagged_character` and `whitespace` read each as
        one token. null is none.
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
    features: Annotated[list[Text], Field(min_length=1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        alignments = self.alignments or self.possible_alignments
        if self.features and alignments:
            raise ValueError(
                "features stand before the source, whose words alignments count; choose one of "
                f"them, got features={self.features} and alignments={alignments!r}"
            )
        self.source_language = _language(self.source)
        self.target_language = _language(self.target)

    def load(self) -> dict[str, datasets.Dataset]:
        gold = {"alignments": self.alignments, "possible_alignments": self.possible_alignments}
        names = self.features or []
        features = {f"features[{number}]": name for number, name in enumerate(names)}
        _, read = self._read(
            optional=list(gold), source=self.source, target=self.target, **features, **gold
        )
        if features:
            read = {
                split: with_features(rows, list(features), names) for split, rows in read.items()
            }
        if any(column is not None for column in gold.values()):
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


class Cogs(HubCorpus):
    """COGS (Kim and Linzen 2020), sentences and their meaning.

    Its split `generalization` has constructions that training lacks.
    """


@dataclass
class Sigmorphon2020(HubCorpus):
    """Words and their phones, from task 1 of SIGMORPHON 2020 (Gorman et al. 2020).

    language: its code of three letters, such as `kor`; `path` is the folder that holds
        `sigmorphon2020_<language>`.
    """

    language: Text = "kor"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = self.path and f"{self.path}/sigmorphon2020_{self.language}"


@dataclass
class Sigmorphon2016(HubCorpus):
    """Lemmas with tags and their forms, from task 1 of SIGMORPHON 2016 (Cotterell et al. 2016).

    language: its code of three letters, such as `fin`; `path` is the folder that holds
        `sigmorphon2016_<language>`.
    """

    language: Text = "fin"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = self.path and f"{self.path}/sigmorphon2016_{self.language}"


@dataclass
class LabelledCorpus(HubDataset, SentenceCorpus):
    """Labelled sentences from the Hugging Face hub or local files (see `HubDataset`).

    text: the column; a dot goes into a nested one.
    label: its column. Labels are whole numbers where every cell of all splits is one, written
        without sign or leading zero, and else text. A row without a label is dropped.
    label_names: names of the labels 0, 1, ..., in this order; null takes those that the dataset
        brings with it, else the labels as they are written.
    """

    text: Text
    label: Text
    label_names: Annotated[list[Text], Field(min_length=2)] | None
    cleaning: SentenceCleaning
    tokenizer: TokenizerTrainer

    def load(self) -> dict[str, datasets.Dataset]:
        """A dataset for each of train, validation and test, with the columns `text` and `label`.

        Labels are whole numbers, text, or None; as `ClassLabel` where the dataset names them.
        """
        raw, read = self._read(text=self.text, label=self.label)
        names = raw.class_names(read, self.label)
        are_numbers = all(raw.has_typed_columns(split) for split in read)
        cells = chain.from_iterable(rows["label"] for rows in read.values())
        self.notes = [*self.notes, *notes_on_labels(cells)]
        return self._split(with_typed_labels(read, names, are_numbers))


def raw_data_path(path: str) -> Path:
    """The absolute path of `data.path`.

    Hangul and accents may be written in the other Unicode form than the folder's name.
    """
    as_written = project_path(Path(path).expanduser())
    composed = Path(unicodedata.normalize("NFC", str(as_written)))
    decomposed = Path(unicodedata.normalize("NFD", str(as_written)))
    for place in (as_written, composed, decomposed):
        if place.exists():
            return place
    return as_written


def raw_state(path: str | None) -> str:
    """A fingerprint of the local raw data in `data.path`: names, sizes and times of the files.

    It is empty for None.
    """
    if path is None:
        return ""
    place = raw_data_path(path)
    lines = []
    for file in (place, *sorted(place.rglob("*"))):
        if file.is_file():
            state = file.stat()
            lines.append(f"{file.name} {state.st_size} {state.st_mtime_ns}")
    return "\n".join(lines)


def _read_split(raw: RawData, split: str, wanted: Mapping[str, str]) -> datasets.Dataset:
    """The rows of a split.

    Raises ExperimentError for a missing column, with the setting that names it.
    """
    from attnlab.data.raw.rows import MissingColumnError, shown_names

    try:
        return raw.read(split)
    except MissingColumnError as missing:
        key = next(key for key, column in wanted.items() if column == missing.column)
        raise ExperimentError(
            f"data.{key}: there is no column {missing.column!r} in split {split!r}; the columns of "
            f"{missing.name} are: {shown_names(missing.columns)}{missing.hint}"
        ) from missing


def _check_column(
    key: str, column: str, read: Mapping[str, datasets.Dataset], is_optional: bool
) -> None:
    """Raise ExperimentError where nothing stands in a column.

    key: the setting that names it.
    read: the splits, in each of which something must stand, or in one where it is optional.
    """
    empty = [name for name, rows in read.items() if rows.data.column(key).null_count == len(rows)]
    if not empty or (is_optional and len(empty) < len(read)):
        return
    for name in empty:
        for fault in read[name][FAULT]:
            if fault is not None and fault.startswith(f"{column!r} is "):
                raise ExperimentError(f"data.{key}: {fault}; give a column of text")
    where = "" if len(empty) == len(read) else f" in split {empty[0]!r}"
    raise ExperimentError(
        f"data.{key}: there is no column {column!r}{where}, or nothing stands in it; leave it out, "
        "or name another one"
    )


def _separator(written: str) -> str:
    r"""The character that `data.separator` means: `tab` and `\t` are one."""
    if written == "\\t":
        return "\t"
    return SEPARATOR_NAMES.get(written, written)


def _language(column: str) -> str | None:
    """`translation.de` -> `de`, where the last part names a language."""
    code = column.rsplit(".", 1)[-1]
    try:
        return str(Locale.parse(code, sep="-" if "-" in code else "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        return None
