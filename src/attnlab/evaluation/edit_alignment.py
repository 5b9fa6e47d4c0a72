"""The shortest edit of a reference into a hypothesis, and what follows from it for each token."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray


def places_in_reference(
    hypothesis: Sequence[Hashable], reference: Sequence[Hashable]
) -> list[int | None]:
    """For each token of the hypothesis, the position of the reference token at its place.

    The places belong to an edit of the reference into the hypothesis with the fewest insertions,
    deletions and substitutions. An inserted token has no place (None). Of several shortest edits it
    is the one that pairs tokens as late in the sentence as possible.
    """
    distances = _edit_distances(hypothesis, reference)
    places: list[int | None] = [None] * len(hypothesis)
    i, j = len(hypothesis), len(reference)
    while i > 0 and j > 0:
        differs = hypothesis[i - 1] != reference[j - 1]
        if distances[i, j] == distances[i - 1, j - 1] + differs:
            i, j = i - 1, j - 1
            places[i] = j
        elif distances[i, j] == distances[i - 1, j] + 1:
            i -= 1  # inserted
        else:
            j -= 1  # deleted
    return places


def wrong_tokens(hypothesis: Sequence[Hashable], reference: Sequence[Hashable]) -> list[int]:
    """Positions in the hypothesis of the tokens that differ from the reference at their place.

    See `places_in_reference`; an inserted token differs.
    """
    places = places_in_reference(hypothesis, reference)
    return [
        position
        for position, place in enumerate(places)
        if place is None or hypothesis[position] != reference[place]
    ]


def links_of_hypothesis(
    links: NDArray[np.int64], places: Sequence[int | None]
) -> NDArray[np.int64]:
    """Links (n, 2) [position, source position] of a reference, moved to a hypothesis.

    A token of the hypothesis takes the links of the reference token at its place, also where the
    two differ.
    """
    moved = []
    for position, place in enumerate(places):
        moved += [(position, source) for target, source in links.tolist() if target == place]
    return np.array(moved, dtype=np.int64).reshape(-1, 2)


def _edit_distances(
    hypothesis: Sequence[Hashable], reference: Sequence[Hashable]
) -> NDArray[np.int64]:
    """Cell (i, j): the edit distance of the first i tokens from the first j of the reference."""
    distances = np.zeros((len(hypothesis) + 1, len(reference) + 1), dtype=np.int64)
    distances[:, 0] = range(len(hypothesis) + 1)
    distances[0, :] = range(len(reference) + 1)
    for i, token in enumerate(hypothesis, start=1):
        for j, expected in enumerate(reference, start=1):
            substituted = distances[i - 1, j - 1] + (token != expected)
            inserted = distances[i - 1, j] + 1
            deleted = distances[i, j - 1] + 1
            distances[i, j] = min(substituted, inserted, deleted)
    return distances
