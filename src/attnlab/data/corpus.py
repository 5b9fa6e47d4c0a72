"""What every corpus has: its splits, its base class, and the cleaning of its rows."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from attnlab.config.part import failure_of
from attnlab.config.signature import PACKAGE
from attnlab.data.tokenizer import Tokenizer, TokenizerTrainer
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

SPLITS = ("train", "validation", "test")

PLACE = "place"
"""A column that a corpus may add to its raw rows: where a row stands, `train.tsv, line 22`."""

FAULT = "fault"
"""Another one: what makes a row unusable, such as `'de' is a list: ["Tom"]`; null for most."""

BleuTokenize = Literal["none", "13a", "intl", "char", "zh"]
"""Tokenisers of sacrebleu that torchmetrics supports too and that need no further package."""

RougeUnit = Literal["word", "character"]

Limit = Annotated[int, Field(ge=1)] | None
_SURROGATE = re.compile("[\ud800-\udfff]")
# Before a text; they stand where files were put together, and nobody sees them.
_BYTE_ORDER_MARKS = re.compile(r"^[\s\ufeff]*\ufeff")
# Fillers of Hangul, and the Braille cell without a dot: letters and signs that look like nothing.
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0\u2800"
_FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}


def visible(text: str) -> str:
    """The text without characters that nobody sees, such as a zero-width space or a Hangul filler.

    White space stays.
    """
    return "".join(filter(_is_visible, text))


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) != "Cf" and character not in _BLANK_LETTERS


def _has_text(text: str) -> bool:
    """Whether anything in a text can be seen."""
    return any(not character.isspace() and _is_visible(character) for character in text)


@dataclass(frozen=True)
class TextCleaning(ABC):
    """The settings that both kinds of cleaning have.

    unicode: the normal form of the stored text; `nfc` makes one of the two spellings of Hangul and
        accents.
    whitespace: `collapse` makes each run of white space one space and strips the ends, and a byte
        order mark before the text; `keep` keeps it.
    max_characters: a row with a longer text is dropped before it is tokenised; null is no limit.
    limit_evaluation: whether the limits in tokens hold for validation and test too. They do not by
        default, because a score on a shortened test set can be compared with no other.
    """

    unicode: Literal["none", "nfc", "nfkc"] = "nfc"
    whitespace: Literal["collapse", "keep"] = "collapse"
    max_characters: Limit = 10_000
    limit_evaluation: bool = False

    @abstractmethod
    def limits(self) -> dict[str, int | None]:
        """The most tokens of each side, by the reason to drop a row with more."""

    def tidy(self, text: str) -> str:
        """`text` in its normal form, each run of white space one space where they collapse."""
        if self.unicode != "none" and not text.isascii():
            text = unicodedata.normalize(_FORMS[self.unicode], text)
        if self.whitespace == "keep":
            return text
        if "\ufeff" in text:
            text = _BYTE_ORDER_MARKS.sub("", text)
        return " ".join(text.split())

    def clean(self, *texts: Any) -> list[str] | str:
        """The tidied texts of a row, or the reason to drop it.

        The reasons are `missing` (None), `not_text`, `too_many_characters` and `empty`.
        """
        for text in texts:
            if text is None:
                return "missing"
            # A lone surrogate cannot be written as UTF-8.
            if not isinstance(text, str) or (not text.isascii() and _SURROGATE.search(text)):
                return "not_text"
            if self.max_characters is not None and len(text) > self.max_characters:
                return "too_many_characters"
        tidied = [self.tidy(text) for text in texts]
        if not all(map(_has_text, tidied)):
            return "empty"
        return tidied

    def over_limit(
        self, lengths: Sequence[NDArray[np.integer]], split: str
    ) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """(reason, whether a row breaks the limit (rows,)) for each limit in tokens.

        lengths: (rows,) of each side, in the order of `limits`.
        """
        if split != "train" and not self.limit_evaluation:
            return
        for (reason, most), of_side in zip(self.limits().items(), lengths, strict=True):
            if most is not None:
                yield reason, of_side > most


@dataclass(frozen=True)
class Cleaning(TextCleaning):
    """Cleaning of sentence pairs.

    max_source_length, max_target_length: in tokens, `<eos>` not counted; null is no limit.
    """

    max_source_length: Limit = None
    max_target_length: Limit = None

    def limits(self) -> dict[str, int | None]:
        return {
            "source_too_long": self.max_source_length,
            "target_too_long": self.max_target_length,
        }


@dataclass(frozen=True)
class SentenceCleaning(TextCleaning):
    """Cleaning of labelled sentences, and of labels that are text.

    max_length: in tokens, `<eos>` not counted; null is no limit.
    """

    max_length: Limit = None

    def limits(self) -> dict[str, int | None]:
        return {"too_long": self.max_length}


AS_IT_IS = Cleaning(unicode="none", whitespace="keep", max_characters=None)


class RawCorpus(ABC):
    """The base class of every corpus.

    Its constructor sets `tokenizer`; the other attributes have the values of `attribute_defaults`
    unless it sets them, too.

    limit: rows of each split that are taken, the first ones, for a quick look; None takes all.
    notes: sentences for the user about what `load` ignored or guessed.
    """

    required_columns: ClassVar[tuple[str, ...]]
    attribute_defaults: ClassVar[Mapping[str, Any]] = {"limit": None, "notes": ()}

    tokenizer: TokenizerTrainer
    limit: int | None
    notes: Sequence[str]

    if not TYPE_CHECKING:
        # For an attribute that neither the class nor its constructor sets. As attributes of this
        # class the defaults would become those of a dataclass's fields, after which none may stand
        # that has no default.
        def __getattr__(self, name: str) -> Any:
            if name not in self.attribute_defaults:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            return self.attribute_defaults[name]

    @property
    def tokenizer_trainers(self) -> list[TokenizerTrainer]:
        return [self.tokenizer]

    @abstractmethod
    def load(self) -> dict[str, datasets.Dataset]:
        """The raw rows: a dataset for each of `SPLITS`, with the columns in `required_columns`.

        These columns hold text. The columns PLACE and FAULT may stand beside them, so that a
        dropped row can be shown with its file and line.
        """

    def _load(self) -> Any:
        """The result of `load`; raises ExperimentError if `load` of a user's own class fails."""
        kind = type(self)
        try:
            return self.load()
        except (ExperimentError, MemoryError):
            raise
        except Exception as error:
            if kind.__module__.partition(".")[0] == PACKAGE:
                raise
            raise ExperimentError(
                f"data: {kind.__name__}.load failed: {failure_of(error, kind)}"
            ) from error

    def load_checked(self) -> dict[str, datasets.Dataset]:
        """The result of `load`; raises ExperimentError if it cannot be prepared."""
        import datasets  # slow to import, and not needed to check a config

        name = type(self).__name__
        found = self._load()
        splits = ", ".join(SPLITS)
        if not isinstance(found, Mapping) or not set(SPLITS) <= set(found):
            given = type(found).__name__
            if isinstance(found, Mapping):
                given = ", ".join(map(str, found))
            raise ExperimentError(
                f"data: {name}.load must return a dataset for each of {splits}, got {given}"
            )
        for split in SPLITS:
            rows = found[split]
            if not isinstance(rows, datasets.Dataset):
                raise ExperimentError(
                    f"data: {name}.load must return a datasets.Dataset for each of {splits}, but "
                    f"{split} is a {type(rows).__name__}; datasets.Dataset.from_list makes one of "
                    "a list of rows"
                )
            missing = [
                column for column in self.required_columns if column not in rows.column_names
            ]
            if missing:
                wanted = " and ".join(self.required_columns)
                given = ", ".join(rows.column_names) or "none"
                raise ExperimentError(
                    f"data: {name}.load must return rows with the columns {wanted}, but those of "
                    f"the {split} split have {given}"
                )
        return {split: found[split] for split in SPLITS}


class Corpus(RawCorpus):
    """A parallel corpus.

    Its constructor sets `tokenizer`, and the attributes that differ from `attribute_defaults`.

    bleu_tokenize: how sacrebleu splits texts into words before it counts them.
    source_language, target_language: CLDR codes such as `de` or `ko_KR`, None where there is no
        language.
    rouge: what ROUGE counts in the evaluation; None does without.
    source_tokenizer, target_tokenizer: of one side, in place of `tokenizer`.
    """

    required_columns = ("source", "target")
    attribute_defaults = {  # noqa: RUF012
        **RawCorpus.attribute_defaults,
        "source_tokenizer": None,
        "target_tokenizer": None,
        "bleu_tokenize": "13a",
        "rouge": None,
        "cleaning": Cleaning(),
        "source_language": None,
        "target_language": None,
    }

    source_tokenizer: TokenizerTrainer | None
    target_tokenizer: TokenizerTrainer | None
    bleu_tokenize: BleuTokenize
    rouge: RougeUnit | None
    cleaning: Cleaning
    source_language: str | None
    target_language: str | None

    @abstractmethod
    def load(self) -> dict[str, datasets.Dataset]:
        """The raw pairs: a dataset for each of `SPLITS`, with text columns `source` and `target`.

        A corpus with known alignments adds `source_spans` and `target_spans`: per pair a list of
        [start, end) character spans of fields, the i-th of the source aligned with the i-th of the
        target; or `alignments`, links between words as `attnlab.data.pharaoh.with_links` writes
        them.
        """

    @property
    def by_side(self) -> dict[str, TokenizerTrainer]:
        """{setting: what learns the tokenizer of a side}, where they are not one and the same."""
        if not self.source_tokenizer and not self.target_tokenizer:
            return {}
        return {
            "source_tokenizer": self.source_tokenizer or self.tokenizer,
            "target_tokenizer": self.target_tokenizer or self.tokenizer,
        }

    @property
    def tokenizer_trainers(self) -> list[TokenizerTrainer]:
        return list(self.by_side.values()) or [self.tokenizer]

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.tokenizer.joint and not self.by_side

    def train_tokenizers(self, *sides: Iterator[str]) -> list[Tokenizer]:
        """The tokenizers of source and target, trained on the texts of each side.

        sides: the texts of the training split, one iterator for each side.
        """
        if not self.by_side:
            return self.tokenizer.train_sides(*sides)
        return [
            trainer.train(texts)
            for trainer, texts in zip(self.by_side.values(), sides, strict=True)
        ]


class SentenceCorpus(RawCorpus):
    """Labelled sentences.

    Its constructor sets `tokenizer`, and the attributes that differ from `attribute_defaults`.

    label_names: names of the labels 0, 1, ..., in this order; None takes those that the dataset
        brings with it, else the labels as they are written.
    """

    required_columns = ("text", "label")
    attribute_defaults = {  # noqa: RUF012
        **RawCorpus.attribute_defaults,
        "cleaning": SentenceCleaning(),
        "label_names": None,
    }

    cleaning: SentenceCleaning
    label_names: list[str] | None

    @abstractmethod
    def load(self) -> dict[str, datasets.Dataset]:
        """The raw sentences: a dataset for each of `SPLITS`, with columns `text` and `label`.

        The values are as the source has them.
        """


def split_sizes(
    num_pairs: int, validation_fraction: float, test_fraction: float
) -> tuple[int, int, int]:
    """The numbers of pairs for training, validation and test."""
    validation = round(num_pairs * validation_fraction)
    test = round(num_pairs * test_fraction)
    return num_pairs - validation - test, validation, test
