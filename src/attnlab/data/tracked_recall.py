"""A corpus that asks for a state to be tracked, and for the value that it names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.data.drawn import DrawnCorpus, Row, row_of_words
from attnlab.data.recall import SEPARATOR, AlphabetSize


@dataclass(kw_only=True)
class TrackedRecallCorpus(DrawnCorpus):
    """State tracking, then associative recall.

    The source is a key with its value for each state, a separator, and numbers; the state is the
    sum of the numbers modulo the number of keys, and the target the key of that state with its
    value: `k2 v5 k0 v1 k1 v3 | 1 2 2` -> `k2 v5`. The pairs come in random order, and values are
    drawn independently. The value is aligned with that of the pair; the key is computed from all
    numbers, and aligned with nothing.

    The composition is that of Phan et al. 2025 (arXiv 2510.00258, abstract): recurrences track a
    state, and attention looks up what it names. The form is attnlab's own.

    min_length, max_length: numbers of a source.
    num_keys: how many states there are, each with a key.
    num_values: the size of the values' alphabet.
    write_key: whether the target has the key before its value. A decoder so names the state before
        it looks the value up.
    """

    rouge = None

    num_keys: AlphabetSize
    num_values: AlphabetSize
    write_key: bool

    def draw(self, random: np.random.Generator, length: int, split: str) -> Row:
        keys = random.permutation(self.num_keys).tolist()
        values = random.choice(self.num_values, self.num_keys).tolist()
        numbers = random.integers(self.num_keys, size=length).tolist()

        source = []
        for key, value in zip(keys, values, strict=True):
            source += [f"k{key}", f"v{value}"]
        state = sum(numbers) % self.num_keys
        place_of_key = 2 * keys.index(state)
        place_of_value = place_of_key + 1

        target = [source[place_of_value]]
        if self.write_key:
            target = [source[place_of_key], *target]
        links = [(place_of_value, len(target) - 1)]
        return row_of_words([*source, SEPARATOR, *map(str, numbers)], target, links)
