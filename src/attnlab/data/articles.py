"""Made reports of some sentences, and their summaries, which copy names and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from attnlab.data.corpus import SPLITS, RougeUnit
from attnlab.data.drawn import DrawnCorpus, Row, row_of_words

InventorySize = Annotated[int, Field(ge=1, le=20_000)]

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
VERBS = ("sold", "bought", "found", "repaired", "planted", "delivered")
GOODS = ("apples", "bricks", "candles", "chairs", "clocks", "lamps", "ropes", "trees")
WEATHER = ("sunny", "rainy", "windy", "foggy", "cold")
FIRST_FIGURE, LAST_FIGURE = 100, 99_999

_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "st", "tr")
_VOWELS = ("a", "e", "i", "o", "u")
_ENDINGS_OF_NAMES = ("n", "s", "l", "r", "k", "ndo", "ski", "ra")
_ENDINGS_OF_PLACES = ("burg", "ford", "ham", "stad", "ville", "wick")


class Inventory(NamedTuple):
    """What an article may name."""

    names: list[str]
    places: list[str]
    figures: list[str]


class Facts(NamedTuple):
    """What an article reports or mentions."""

    name: str
    place: str
    figure: str


@dataclass(kw_only=True)
class ArticlesCorpus(DrawnCorpus):
    """Short reports, and summaries that copy who, where and how many (made for See et al. 2017).

    One sentence of an article reports something, at any place in it: `On Friday , Brenwick 's Tova
    sold 417 lamps .` The summary has its fixed shape: `Tova of Brenwick sold 417 lamps .` The other
    sentences mention other people, places and figures. Name, place, figure, verb and goods are
    aligned with the words of the sentence that reports.

    Names, places and figures are made up. Those of validation and test that are unseen come from
    inventories of their own, so that training has none of them.

    min_length, max_length: sentences of an article.
    num_names, num_places, num_figures: in the inventory of training. Validation and test have as
        many others each. A word rarer than `tokenizer.min_frequency` is unknown, and small
        inventories are not: then only the unseen ones are.
    unseen: the share of the names, places and figures of validation and test that training does
        not have.
    """

    num_names: InventorySize
    num_places: InventorySize
    num_figures: InventorySize
    unseen: Annotated[float, Field(ge=0, le=1)]
    rouge: RougeUnit | None

    @cached_property
    def inventories(self) -> dict[str, Inventory]:
        """What each split has of its own; no word is in two of them."""
        random = np.random.default_rng(self.seed)
        names = _different(_made_up(random, _ENDINGS_OF_NAMES), len(SPLITS) * self.num_names)
        places = _different(_made_up(random, _ENDINGS_OF_PLACES), len(SPLITS) * self.num_places)
        range_of_figures = LAST_FIGURE - FIRST_FIGURE + 1
        drawn = random.permutation(range_of_figures)[: len(SPLITS) * self.num_figures]
        figures = [str(FIRST_FIGURE + number) for number in drawn.tolist()]
        return {
            split: Inventory(
                names[number :: len(SPLITS)],
                places[number :: len(SPLITS)],
                figures[number :: len(SPLITS)],
            )
            for number, split in enumerate(SPLITS)
        }

    def draw(self, random: np.random.Generator, length: int, split: str) -> Row:
        facts = self._facts(random, split)
        verb = _one_of(random, VERBS)
        goods = _one_of(random, GOODS)
        weekday = _one_of(random, WEEKDAYS)
        report = ["On", weekday, ",", facts.place, "'s", facts.name, verb, facts.figure, goods, "."]
        summary = [facts.name, "of", facts.place, verb, facts.figure, goods, "."]

        reported = int(random.integers(length))  # the number of the sentence that reports
        source: list[str] = []
        first_word = 0
        for number in range(length):
            if number == reported:
                first_word = len(source)
                source += report
            else:
                source += _distractor(random, self._facts(random, split))

        links = []
        for word in (*facts, verb, goods):
            links.append((first_word + report.index(word), summary.index(word)))
        return row_of_words(source, summary, links)

    def _facts(self, random: np.random.Generator, split: str) -> Facts:
        """A name, a place and a figure; outside of training, unseen ones as often as wanted."""
        chosen = []
        for kind in range(len(Facts._fields)):
            is_unseen = split != "train" and random.random() < self.unseen
            inventory = self.inventories[split if is_unseen else "train"]
            chosen.append(_one_of(random, inventory[kind]))
        return Facts(*chosen)


def _distractor(random: np.random.Generator, facts: Facts) -> list[str]:
    """A sentence that reports nothing, with one or two of the words that a report has."""
    goods = _one_of(random, GOODS)
    weekday = _one_of(random, WEEKDAYS)
    weather = _one_of(random, WEATHER)
    shapes = [
        ["It", "was", weather, "in", facts.place, "on", weekday, "."],
        [facts.name, "read", "a", "book", "about", goods, "."],
        ["The", "market", "of", facts.place, "has", facts.figure, "visitors", "."],
        [facts.name, "was", "there", "with", facts.figure, "others", "."],
    ]
    return shapes[int(random.integers(len(shapes)))]


def _one_of(random: np.random.Generator, words: Sequence[str]) -> str:
    # random.choice makes an array of the words first, each time.
    return words[int(random.integers(len(words)))]


def _made_up(random: np.random.Generator, endings: tuple[str, ...]) -> Iterator[str]:
    """Words of two or three syllables and an ending, without end."""
    while True:
        word = ""
        for _ in range(int(random.integers(2, 4))):
            word += _one_of(random, _ONSETS) + _one_of(random, _VOWELS)
        yield (word + _one_of(random, endings)).capitalize()


def _different(words: Iterator[str], number: int) -> list[str]:
    """The first so many different words."""
    found: dict[str, None] = {}
    for word in words:
        found[word] = None
        if len(found) == number:
            break
    return list(found)
