"""What a sentence or a pair must be to be kept, and how its text is tidied before anything counts it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

UnicodeForm = Literal["none", "nfc", "nfkc"]
WhiteSpace = Literal["collapse", "keep"]
Lengths = NDArray[np.integer]
Flags = NDArray[np.bool_]

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}


def tidy(text: str, unicode: UnicodeForm, whitespace: WhiteSpace) -> str:
    """`text` in its normal form, each run of white space one space where they collapse."""
    if unicode != "none" and not text.isascii():
        text = unicodedata.normalize(_FORMS[unicode], text)
    return " ".join(text.split()) if whitespace == "collapse" else text


def fault_of(text: Any, max_characters: int | None) -> str | None:
    """Why a raw value cannot be tidied: `not_text`, `too_many_characters`; None where it can."""
    # A lone surrogate is no character: it cannot be written as UTF-8.
    if not isinstance(text, str) or (not text.isascii() and _SURROGATE.search(text)):
        return "not_text"
    return "too_many_characters" if max_characters is not None and len(text) > max_characters else None


@dataclass(frozen=True)
class Cleaning:
    """Tidying of raw text, and the limits that a pair must keep.

    unicode: the normal form of the stored text; `nfc` makes one of the two spellings of Hangul and accents.
    whitespace: `collapse` makes each run of white space one space and strips the ends; `keep` keeps it.
    min_length, max_source_length, max_target_length: in tokens, `<eos>` not counted; null is no limit.
    max_characters: a row with a longer side is never tokenised at all; null is no limit.
    limit_evaluation: whether the limits in tokens hold for validation and test too. They do not by default,
        because a score on a shortened test set can be compared with no other.
    """

    unicode: UnicodeForm = "nfc"
    whitespace: WhiteSpace = "collapse"
    min_length: Annotated[int, Field(ge=1)] = 1
    max_source_length: Annotated[int, Field(ge=1)] | None = None
    max_target_length: Annotated[int, Field(ge=1)] | None = None
    max_characters: Annotated[int, Field(ge=1)] | None = 10_000
    limit_evaluation: bool = False

    def __post_init__(self) -> None:
        for name in ("max_source_length", "max_target_length"):
            limit = getattr(self, name)
            if limit is not None and limit < self.min_length:
                raise ValueError(f"{name} must be at least min_length ({self.min_length}), got {limit}")

    def tidy(self, text: str) -> str:
        return tidy(text, self.unicode, self.whitespace)

    def pair(self, source: Any, target: Any) -> tuple[str, str] | str:
        """The tidied pair, or the reason why there is none: `not_text`, `too_many_characters`, `empty`."""
        for text in (source, target):
            fault = fault_of(text, self.max_characters)
            if fault is not None:
                return fault
        source, target = self.tidy(source), self.tidy(target)
        if not source.strip() or not target.strip():
            return "empty"
        return source, target

    def over_limit(self, source_lengths: Lengths, target_lengths: Lengths, split: str) -> Iterator[tuple[str, Flags]]:
        """(the limit's name, whether a pair breaks it (pairs,)) for each limit in tokens; the first one counts."""
        if split == "train" or self.limit_evaluation:
            for side, lengths, most in (
                ("source", source_lengths, self.max_source_length),
                ("target", target_lengths, self.max_target_length),
            ):
                yield f"{side}_too_short", lengths < self.min_length
                if most is not None:
                    yield f"{side}_too_long", lengths > most


AS_IT_IS = Cleaning(unicode="none", whitespace="keep", max_characters=None)
