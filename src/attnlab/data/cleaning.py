"""Cleaning of raw text: normal form, white space, and the limits that a pair or a labelled sentence must keep."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}


@dataclass(frozen=True)
class TextCleaning(ABC):
    """The settings that both kinds of cleaning have.

    unicode: the normal form of the stored text; `nfc` makes one of the two spellings of Hangul and accents.
    whitespace: `collapse` makes each run of white space one space and strips the ends; `keep` keeps it.
    min_length: in tokens, `<eos>` not counted.
    max_characters: a row with a longer text is dropped before it is tokenised; null is no limit.
    limit_evaluation: whether the limits in tokens hold for validation and test too. They do not by default,
        because a score on a shortened test set can be compared with no other.
    """

    unicode: Literal["none", "nfc", "nfkc"] = "nfc"
    whitespace: Literal["collapse", "keep"] = "collapse"
    min_length: Annotated[int, Field(ge=1)] = 1
    max_characters: Annotated[int, Field(ge=1)] | None = 10_000
    limit_evaluation: bool = False

    @abstractmethod
    def limits(self) -> dict[str, int | None]:
        """The most tokens of each side, by what its settings and reasons begin with (`source_`)."""

    def __post_init__(self) -> None:
        for side, limit in self.limits().items():
            if limit is not None and limit < self.min_length:
                raise ValueError(f"max_{side}length must be at least min_length ({self.min_length}), got {limit}")

    def tidy(self, text: str) -> str:
        """`text` in its normal form, each run of white space one space where they collapse."""
        if self.unicode != "none" and not text.isascii():
            text = unicodedata.normalize(_FORMS[self.unicode], text)
        return " ".join(text.split()) if self.whitespace == "collapse" else text

    def clean(self, *texts: Any) -> list[str] | str:
        """The tidied texts of a row, or the reason to drop it: `not_text`, `too_many_characters`, `empty`."""
        for text in texts:
            # A lone surrogate cannot be written as UTF-8.
            if not isinstance(text, str) or (not text.isascii() and _SURROGATE.search(text)):
                return "not_text"
            if self.max_characters is not None and len(text) > self.max_characters:
                return "too_many_characters"
        tidied = [self.tidy(text) for text in texts]
        return tidied if all(text.strip() for text in tidied) else "empty"

    def over_limit(self, lengths: Sequence[NDArray[np.integer]], split: str) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """(reason, whether a row breaks the limit (rows,)) for each limit in tokens.

        lengths: (rows,) of each side, in the order of `limits`.
        """
        if split == "train" or self.limit_evaluation:
            for (side, most), each in zip(self.limits().items(), lengths, strict=True):
                yield f"{side}too_short", each < self.min_length
                if most is not None:
                    yield f"{side}too_long", each > most


@dataclass(frozen=True)
class Cleaning(TextCleaning):
    """Cleaning of sentence pairs.

    max_source_length, max_target_length: in tokens, `<eos>` not counted; null is no limit.
    """

    max_source_length: Annotated[int, Field(ge=1)] | None = None
    max_target_length: Annotated[int, Field(ge=1)] | None = None

    def limits(self) -> dict[str, int | None]:
        return {"source_": self.max_source_length, "target_": self.max_target_length}


@dataclass(frozen=True)
class SentenceCleaning(TextCleaning):
    """Cleaning of labelled sentences, and of labels that are text.

    max_length: in tokens, `<eos>` not counted; null is no limit.
    """

    max_length: Annotated[int, Field(ge=1)] | None = None

    def limits(self) -> dict[str, int | None]:
        return {"": self.max_length}


AS_IT_IS = Cleaning(unicode="none", whitespace="keep", max_characters=None)
