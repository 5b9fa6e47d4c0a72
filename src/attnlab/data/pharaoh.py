"""Gold word alignments in Pharaoh format: read, checked, and handed on to the tokens of the words.

A row reads `0-0 1-2 2?3`: the number of a source word, a mark, and the number of a target word.
Words are separated by spaces and tabs. A sentence with other white space, such as a no-break space,
which some tools take for a part of a word and some do not, is dropped. `-` marks a sure link, `?`
or `p` a possible one (Och and Ney 2003); `1-2` and `1?2` together are sure. Tools such as
fast_align write sure links alone, and count from 0; some gold files count from 1.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnlab.data.corpus import PLACE
from attnlab.errors import ExperimentError, show

if TYPE_CHECKING:
    import datasets

_LINK = re.compile(r"([0-9]+)([-?p])([0-9]+)")
_WORD = re.compile(r"\S+")
_PARTED = re.compile(r"[^ \t\r\n\v\f]+")


def with_links(rows: datasets.Dataset, split: str, first_word: int) -> datasets.Dataset:
    """The rows with one column `alignments`: sure and possible links, counted from 0.

    Rows without a gold alignment are empty.

    rows: with the columns `source` and `target`, and `alignments` and `possible_alignments` where
        the split has them.

    Raises ExperimentError where a row holds something else than links between words of its
    sentences.
    """
    columns = [name for name in ("alignments", "possible_alignments") if name in rows.column_names]
    written = []
    for number, row in enumerate(rows, start=1):
        stands_at = row.get(PLACE) or f"row {number}"
        place = f"{stands_at} of split {split!r}"
        links: list[str] = []
        for column in columns:
            links += _links_of(row, column, place, first_word)
        written.append(" ".join(links))
    return rows.remove_columns(columns).add_column("alignments", written)


def _links_of(row: dict[str, Any], column: str, place: str, first_word: int) -> list[str]:
    """The links of a cell, counted from 0; those of `possible_alignments` are possible."""
    cell = row[column]
    texts = (row["source"], row["target"])
    if cell is None or not all(isinstance(text, str) for text in texts):
        return []  # rows without text are dropped

    links = []
    # A cell that is no text cannot be a link, which the error says.
    for link in cell.split() if isinstance(cell, str) else [cell]:
        found = _LINK.fullmatch(link) if isinstance(link, str) else None
        if found is None:
            raise ExperimentError(
                f"data.{column}: {place} has {show(link)}, which is no link; write the numbers of "
                "a source word and of a target word as 0-1, or 0?1 where the link is only "
                "possible, with spaces between the links"
            )
        places = [int(found[1]) - first_word, int(found[3]) - first_word]
        for side, text, position in zip(("source", "target"), texts, places, strict=True):
            words = max(count_words(text), len(text.split()))
            if not 0 <= position < words:
                raise ExperimentError(
                    f"data.{column}: {place} has the link {link}, but its {side} has {words} "
                    f"words, numbered {first_word} to {words - 1 + first_word}; data.first_word "
                    "says whether they count from 0 or 1"
                )
        is_sure = found[2] == "-" and column == "alignments"
        mark = "-" if is_sure else "?"
        links.append(f"{places[0]}{mark}{places[1]}")
    return links


def count_words(text: str) -> int:
    """How many words a sentence has for tools that write links: white space of ASCII parts them."""
    return len(_PARTED.findall(text))


def links_between_tokens(
    text: str, source_words: Sequence[int], target_words: Sequence[int]
) -> tuple[list[list[int]], list[list[int]]]:
    """(sure, possible) links of tokens, each [target position, source position].

    Each token of a word has the links of its word.

    text: links as `with_links` writes them.
    source_words, target_words: of each token, as `words_of_tokens` gives them.
    """
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for link in text.split():
        source, mark, target = _LINK.fullmatch(link).groups()  # type: ignore[union-attr]
        targets = _positions(target_words, int(target))
        sources = _positions(source_words, int(source))
        between_tokens = {(t, s) for t in targets for s in sources}
        possible |= between_tokens
        if mark == "-":
            sure |= between_tokens
    return sorted(map(list, sure)), sorted(map(list, possible))


def _positions(words: Sequence[int], word: int) -> list[int]:
    """The positions of the tokens that lie in a word."""
    return [i for i, each in enumerate(words) if each == word]


def words_of_tokens(text: str, offsets: Sequence[Sequence[int]]) -> list[int]:
    """The number of the word that each token lies in, from 0, and -1 between words.

    offsets: [start, end) of each token in characters; one that reaches over several words belongs
        to the first.
    """
    spans = [found.span() for found in _WORD.finditer(text)]
    words = []
    for start, end in offsets:
        # The first word that ends behind the token's start; the token may also end before it.
        word = bisect_right(spans, start, key=lambda span: span[1])
        is_in_word = word < len(spans) and spans[word][0] < end
        words.append(word if is_in_word else -1)
    return words
