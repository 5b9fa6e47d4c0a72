"""Which systems can be told apart, in letters: two that share one cannot."""

from __future__ import annotations

import string
from collections.abc import Iterable

_LETTERS = string.ascii_lowercase + string.ascii_uppercase


def letter_groups(count: int, apart: Iterable[tuple[int, int]]) -> list[str]:
    """The compact letter display of Piepho 2004 ("An algorithm for a letter-based representation of all-pairwise
    comparisons", Journal of Computational and Graphical Statistics 13), by his insert-and-absorb algorithm.

    Args:
        count: systems, which are 0, 1, ..., the best one first: it has an `a`.
        apart: pairs that can be told apart.

    Returns the letters of each system. Two systems share a letter exactly where their pair is not in `apart`.
    """
    groups = [frozenset(range(count))]
    for one, other in sorted({(min(pair), max(pair)) for pair in apart}):
        split: list[frozenset[int]] = []
        for group in groups:
            split += [group - {one}, group - {other}] if {one, other} <= group else [group]  # insert
        distinct = list(dict.fromkeys(split))
        groups = [group for group in distinct if not any(group < larger for larger in distinct)]  # absorb
    groups.sort(key=sorted)
    names = [_LETTERS[number] if number < len(_LETTERS) else f"({number})" for number in range(len(groups))]
    return ["".join(name for name, group in zip(names, groups, strict=True) if each in group) for each in range(count)]
