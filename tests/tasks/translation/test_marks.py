"""Marks where a hypothesis differs from its reference."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from attnlab.tasks.translation.report.marks import Piece, marked_texts


def written(pieces: Sequence[Piece]) -> str:
    """The text, with what is marked in brackets."""
    return "".join(f"[{piece.text}]" if piece.is_marked else piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "marked", "of_reference"),
    [
        ("the cat sat", "the cat sat", "the cat sat", "the cat sat"),
        ("the cat sat", "the black cat sat", "the cat sat", "the [black] cat sat"),
        ("the the cat", "the cat", "[the] the cat", "the cat"),
        ("1998년 5월 일요일", "1999년 5월 금요일", "199[8]년 5월 [일]요일", "1999년 5월 금요일"),
        ("3일", "13일", "[3일]", "13일"),
        ("", "a  b", "", "[a]  [b]"),
        ("a\u2028b", "", "[a]\u2028[b]", ""),
    ],
)
def test_marks_are_what_the_shortest_edit_changes(
    hypothesis: str, reference: str, marked: str, of_reference: str
) -> None:
    pieces = marked_texts(hypothesis, reference)
    assert (written(pieces[0]), written(pieces[1])) == (marked, of_reference)
