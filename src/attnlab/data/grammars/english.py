"""English word forms that the grammars share."""

from __future__ import annotations

from typing import Literal

Person = Literal["1s", "2s", "3s", "1p", "3p"]
"""First person singular, and so on; `you` is one person here, 2s."""

_BE: dict[Person, str] = {"1s": "am", "2s": "are", "3s": "is", "1p": "are", "3p": "are"}
_THIRD_PERSON = {"have": "has", "watch": "watches", "must": "must", "can": "can"}


def article(next_word: str) -> str:
    """The indefinite article before a word.

    The letter decides: no word of the grammars is like `hour` or `university`.
    """
    return "an" if next_word[0] in "aeiou" else "a"


def be(person: Person) -> str:
    return _BE[person]


def present(verb: str, person: Person) -> str:
    """`read`, and in the third person singular `reads`."""
    if person != "3s":
        return verb
    return _THIRD_PERSON.get(verb, f"{verb}s")


def is_plural(person: Person) -> bool:
    return person in ("1p", "3p")
