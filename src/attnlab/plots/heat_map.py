"""Description of a heat map, which every renderer draws: labels, texts, colours and marks.

`heat_map_html.py` makes it a part of a page, `heat_map_figure.py` a picture. The explorer's page
draws the same classes by JavaScript. Axes: T target tokens (rows), S source tokens (columns).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.alignments import Link
from attnlab.evaluation.attention_map import AttentionMap
from attnlab.plots.colour_scale import LEVELS
from attnlab.plots.labels import visible

_LEAST_WEIGHT = 0.005  # smaller ones would be written as 0
_PIXELS_A_COLUMN = 10  # of the terminal columns of a label
_LABEL_PADDING = 18
_WIDEST_HEAD = 3  # terminal columns

WRONG_SIGN = "✗"
MINUS = "−"


@dataclass(frozen=True)
class Cell:
    """One weight as it is drawn.

    text: the weight in the cell, "" for one that rounds to 0.
    level: its colour on the scale from 0 to 1; that of a negative weight is that of its size.
    row_level: its colour on the scale from 0 to the largest weight of the row, without the signs.
    """

    row: int
    column: int
    weight: float
    text: str
    level: int
    row_level: int


@dataclass(frozen=True, eq=False)
class HeatMap:
    """What a heat map shows.

    source: S labels of the columns, with visible control characters.
    target: T labels of the rows.
    weights: (T, S).
    sure, possible: cells (row, column) of a known alignment; a link is in one of the two.
    wrong: the rows whose token differs from the reference at its place.
    knows_reference: whether a reference is known at all.
    """

    title: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: NDArray[np.float32]
    sure: frozenset[Link] = frozenset()
    possible: frozenset[Link] = frozenset()
    wrong: frozenset[int] = frozenset()
    knows_reference: bool = False

    @classmethod
    def of(cls, attention: AttentionMap) -> HeatMap:
        sure = _as_links(attention.sure_links)
        return cls(
            title=attention.title,
            source=tuple(visible(token) for token in attention.source_tokens),
            target=tuple(visible(token) for token in attention.target_tokens),
            weights=attention.weights,
            sure=sure,
            possible=_as_links(attention.possible_links) - sure,
            wrong=frozenset(attention.wrong_targets or ()),
            knows_reference=attention.wrong_targets is not None,
        )

    @property
    def cells(self) -> Iterator[Cell]:
        """The cells with a weight to see on one of the two scales, row by row."""
        for row, weights in enumerate(self.weights.tolist()):
            largest = max(map(abs, weights), default=0.0)
            for column, weight in enumerate(weights):
                text = weight_text(weight)
                row_level = colour_level(abs(weight) / largest) if largest > 0 else 0
                if text or row_level > 0:
                    yield Cell(row, column, weight, text, colour_level(abs(weight)), row_level)

    @property
    def is_signed(self) -> bool:
        """Whether a weight is negative."""
        return bool((self.weights < 0).any())

    @property
    def links(self) -> list[tuple[Link, Literal["sure", "possible"]]]:
        """The cells to outline, row by row, with the kind of their link."""
        kinds: dict[Link, Literal["sure", "possible"]] = {}
        kinds |= dict.fromkeys(self.possible, "possible")
        kinds |= dict.fromkeys(self.sure, "sure")
        return sorted(kinds.items())

    @staticmethod
    def is_wide(label: str) -> bool:
        """Whether the label of a column stands upright, because it is wider than a small cell."""
        return _terminal_columns(label) > _WIDEST_HEAD

    def reading(self, cell: Cell) -> str:
        """A cell in words, for a pointer that rests on it."""
        target, source = self.target[cell.row], self.source[cell.column]
        return f"{_isolated(target)} ← {_isolated(source)}: {cell.weight:.4f}"

    @property
    def label_width(self) -> int:
        """Pixels that the widest label of a row needs."""
        widest = max(map(_terminal_columns, self.target), default=0)
        # The sign of a wrong word takes two columns.
        sign = 2 if self.wrong else 0
        return _PIXELS_A_COLUMN * (widest + sign) + _LABEL_PADDING

    @property
    def summary(self) -> str:
        """The map in words: where each target token looks most."""
        sentences = []
        for row, weights in enumerate(self.weights):
            token = _isolated(self.target[row])
            if len(weights) == 0:
                continue
            strongest = int(abs(weights).argmax())
            source = _isolated(self.source[strongest])
            wrong = ", differs from the reference" if row in self.wrong else ""
            sentences.append(f"{token}{wrong}: {source} {weights[strongest]:.2f}")
        if not sentences:
            return "No tokens."
        return "Strongest source token of each target token. " + "; ".join(sentences) + "."


def _as_links(links: NDArray[np.int64]) -> frozenset[Link]:
    return frozenset((row, column) for row, column in links.tolist())


def weight_text(weight: float) -> str:
    """A weight with two digits as it stands in its cell: ".83", "1" for 1.00, "" below 0.005.

    A negative one has a minus sign in front: "−.83".
    """
    if weight < 0:
        positive = weight_text(-weight)
        return positive and MINUS + positive
    if weight < _LEAST_WEIGHT:
        return ""
    if weight < 0.995:
        return f"{weight:.2f}".removeprefix("0")
    # Weights that do not sum to one may be larger than 1.
    return f"{weight:.1f}".removesuffix(".0")


def colour_level(share: float) -> int:
    """The number of the colour of a share between 0 and 1; shares outside take the nearest."""
    return int(LEVELS * min(max(share, 0.0), 1.0) + 0.5)


def _terminal_columns(label: str) -> int:
    """Columns of a label on a terminal, where Hangul, kana and kanji take two."""
    wide = sum(unicodedata.east_asian_width(character) in "FW" for character in label)
    return len(label) + wide


def _isolated(token: str) -> str:
    """A token that leaves the direction of the text around it alone."""
    return f"\u2068{token}\u2069"
