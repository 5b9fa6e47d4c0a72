"""Where a hypothesis differs from its reference, as marked pieces of both texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.evaluation.edit_alignment import places_in_reference, wrong_tokens

_WORD = re.compile(r"\S+|\s+")


@dataclass(frozen=True)
class Piece:
    """A part of a text; marked where it differs from the other text."""

    text: str
    is_marked: bool = False


def marked_texts(hypothesis: str, reference: str) -> tuple[list[Piece], list[Piece]]:
    """The pieces of a hypothesis and of its reference.

    Words are paired by the shortest edit of the reference into the hypothesis. Of a word that takes
    the place of another, the wrong characters are marked; a word without a place is marked whole,
    and in the reference those that the hypothesis lacks.
    """
    written, expected = _words(hypothesis), _words(reference)
    places = places_in_reference(written, expected)
    of_words = []
    for word, place in zip(written, places, strict=True):
        of_words.append([Piece(word, True)] if place is None else _compared(word, expected[place]))
    lacking = set(range(len(expected))) - set(places)
    of_reference = [[Piece(word, place in lacking)] for place, word in enumerate(expected)]
    return _with_spaces(hypothesis, of_words), _with_spaces(reference, of_reference)


def _words(text: str) -> list[str]:
    return text.split()


def _compared(word: str, expected: str) -> list[Piece]:
    """The pieces of a word beside the one that is expected in its place."""
    wrong = set(wrong_tokens(word, expected))
    if not wrong and word != expected:
        # It only lacks characters, which no mark in it could show.
        return [Piece(word, True)]
    pieces: list[Piece] = []
    for position, character in enumerate(word):
        is_wrong = position in wrong
        if pieces and pieces[-1].is_marked == is_wrong:
            pieces[-1] = Piece(pieces[-1].text + character, is_wrong)
        else:
            pieces.append(Piece(character, is_wrong))
    return pieces


def _with_spaces(text: str, of_words: Sequence[Sequence[Piece]]) -> list[Piece]:
    """The pieces of the words, with the white space of the text between them."""
    words = iter(of_words)
    pieces: list[Piece] = []
    for found in _WORD.findall(text):
        if found.isspace():
            pieces.append(Piece(found))
        else:
            pieces += next(words)
    return pieces
