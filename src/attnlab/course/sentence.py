"""Sentences that a student reads, in the languages of the course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KOREAN, ENGLISH = "ko", "en"
LANGUAGES = (KOREAN, ENGLISH)


@dataclass(frozen=True)
class Sentence:
    """One sentence in Korean and in English."""

    ko: str
    en: str

    def in_language(self, language: str) -> str:
        return self.ko if language == KOREAN else self.en


class RefusalError(Exception):
    """A student's file is none that can be graded, for the reasons that the sentences give."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.sentences = list(sentences)
        super().__init__("\n".join(sentence.en for sentence in sentences))


def language_of(environment: Mapping[str, str]) -> str:
    """The language of the first of the locale's variables that is set; English but for Korean."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        locale = environment.get(name)
        if locale:
            return KOREAN if locale.startswith("ko") else ENGLISH
    return ENGLISH


def shape_text(shape: Sequence[int]) -> str:
    """`(3, 5)`, as Python writes a shape."""
    return str(tuple(shape))
