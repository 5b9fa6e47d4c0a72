"""Korean particles, which depend on how the word before them ends."""

from __future__ import annotations

_FIRST_SYLLABLE = ord("가")
_LAST_SYLLABLE = ord("힣")
_ENDINGS = 28  # a final consonant, or none, of each syllable


def ends_in_consonant(text: str) -> bool:
    """Whether the last syllable of a Hangul text has a final consonant (받침).

    Raises ValueError for a text that does not end in a Hangul syllable.
    """
    code = ord(text[-1])
    if not _FIRST_SYLLABLE <= code <= _LAST_SYLLABLE:
        raise ValueError(f"{text!r} does not end in a Hangul syllable")
    return (code - _FIRST_SYLLABLE) % _ENDINGS != 0


def topic(noun: str) -> str:
    """`저는`, `지민은`."""
    return noun + ("은" if ends_in_consonant(noun) else "는")


def subject(noun: str) -> str:
    """`커피가`, `물이`."""
    return noun + ("이" if ends_in_consonant(noun) else "가")


def object_(noun: str) -> str:
    """`커피를`, `물을`."""
    return noun + ("을" if ends_in_consonant(noun) else "를")
