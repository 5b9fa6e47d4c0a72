"""The shortest edit of a reference into a hypothesis."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from attnlab.evaluation.edit_alignment import (
    links_of_hypothesis,
    places_in_reference,
    wrong_tokens,
)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "places", "wrong"),
    [
        ("", "", [], []),
        ("", "ab", [], []),
        ("a", "", [None], [0]),
        ("abc", "abc", [0, 1, 2], []),
        ("axc", "abc", [0, 1, 2], [1]),
        ("abxc", "abc", [0, 1, None, 2], [2]),
        ("ac", "abc", [0, 2], []),
        ("xabc", "abc", [None, 0, 1, 2], [0]),
        ("나는", "너는", [0, 1], [0]),
    ],
)
def test_tokens_have_their_places_in_the_reference(
    hypothesis: str, reference: str, places: list[int | None], wrong: list[int]
) -> None:
    assert places_in_reference(hypothesis, reference) == places
    assert wrong_tokens(hypothesis, reference) == wrong


def _shortest(hypothesis: str, reference: str) -> int:
    """The fewest edits, by trying all pairings of equal order."""
    most_pairs = min(len(hypothesis), len(reference))
    costs = []
    for pairs in range(most_pairs + 1):
        for ours in itertools.combinations(range(len(hypothesis)), pairs):
            for theirs in itertools.combinations(range(len(reference)), pairs):
                substituted = sum(
                    hypothesis[i] != reference[j] for i, j in zip(ours, theirs, strict=True)
                )
                costs.append(substituted + len(hypothesis) + len(reference) - 2 * pairs)
    return min(costs)


def test_places_belong_to_an_edit_that_no_other_beats() -> None:
    words = [""]
    for length in (1, 2, 3):
        words += map("".join, itertools.product("ab", repeat=length))
    for hypothesis, reference in itertools.product(words, words):
        places = places_in_reference(hypothesis, reference)
        paired = [place for place in places if place is not None]
        assert paired == sorted(set(paired))
        # Inserted and substituted tokens are wrong, deleted ones are paired with nothing.
        edits = len(wrong_tokens(hypothesis, reference)) + len(reference) - len(paired)
        assert edits == _shortest(hypothesis, reference), (hypothesis, reference)


def test_links_move_to_the_token_at_their_place() -> None:
    links = np.array([[0, 3], [2, 1], [2, 2]])
    moved = links_of_hypothesis(links, [None, 0, 2])
    assert moved.tolist() == [[1, 3], [2, 1], [2, 2]]
    assert links_of_hypothesis(links, [None, 1]).shape == (0, 2)
