"""What a labelled sentence must be to be kept, and how its text is tidied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from attnlab.data.cleaning import Flags, Lengths, UnicodeForm, WhiteSpace, fault_of, tidy


@dataclass(frozen=True)
class SentenceCleaning:
    """Tidying of raw text, and the limits that a sentence must keep; as `Cleaning`, for one side alone.

    unicode, whitespace: of sentences, and of labels that are text.
    min_length, max_length: in tokens, `<eos>` not counted; null is no limit.
    max_characters: a longer sentence is never tokenised at all; null is no limit.
    limit_evaluation: whether the limits in tokens hold for validation and test too.
    """

    unicode: UnicodeForm = "nfc"
    whitespace: WhiteSpace = "collapse"
    min_length: Annotated[int, Field(ge=1)] = 1
    max_length: Annotated[int, Field(ge=1)] | None = None
    max_characters: Annotated[int, Field(ge=1)] | None = 10_000
    limit_evaluation: bool = False

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < self.min_length:
            raise ValueError(f"max_length must be at least min_length ({self.min_length}), got {self.max_length}")

    def tidy(self, text: str) -> str:
        return tidy(text, self.unicode, self.whitespace)

    def sentence(self, text: Any) -> tuple[str, None] | tuple[None, str]:
        """(the tidied sentence, None), or (None, why there is none: `not_text`, `too_many_characters`, `empty`)."""
        fault = fault_of(text, self.max_characters)
        if fault is not None:
            return None, fault
        text = self.tidy(text)
        return (text, None) if text.strip() else (None, "empty")

    def over_limit(self, lengths: Lengths, split: str) -> Iterator[tuple[str, Flags]]:
        """(the limit's name, whether a sentence breaks it (sentences,)) for each limit in tokens."""
        if split == "train" or self.limit_evaluation:
            yield "too_short", lengths < self.min_length
            if self.max_length is not None:
                yield "too_long", lengths > self.max_length
