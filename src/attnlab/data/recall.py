"""Corpora that ask for what stood earlier in the source: associative recall, and flip-flops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from attnlab.data.drawn import DrawnCorpus, Row, row_of_words

AlphabetSize = Annotated[int, Field(ge=2, le=10_000)]
Probability = Annotated[float, Field(ge=0, le=1)]

SEPARATOR = "|"
WRITE, IGNORE, READ = "w", "i", "r"


@dataclass(kw_only=True)
class MqarCorpus(DrawnCorpus):
    """Multi-query associative recall (Arora et al. 2023, section 3), from a source to a target.

    The source is a sequence of keys, each with its value, a separator, and queries; the target is
    the value of each query: `k3 v1 k0 v7 | k0 k3` -> `v7 v1`. Keys of a source are distinct, values
    are drawn independently. The queries are different keys of the source in random order, where the
    paper puts them among the pairs at distances of a power law. The i-th value of the target is
    aligned with the value that follows the i-th query's key.

    With `repeat_keys` the target repeats each query before its value: `k0 v7 k3 v1`. A decoder so
    reads a key before it looks up the value, as the model of the paper reads its query; without, it
    has to find the query and the pair in one look. A repeated key is aligned with its query.

    min_length, max_length: keys, each with its value, in a source.
    num_keys, num_values: the sizes of the two alphabets.
    num_queries: in each source; null asks for every key of it.
    repeat_keys: whether the target has each query before its value.
    """

    rouge = None

    num_keys: AlphabetSize
    num_values: AlphabetSize
    num_queries: Annotated[int, Field(ge=1)] | None
    repeat_keys: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest > self.num_keys:
            raise ValueError(
                f"num_keys must be at least the keys of a source ({self.longest}), which are all "
                f"different, got {self.num_keys}"
            )
        shortest = min(least for least, _ in self.lengths.values())
        if self.num_queries is not None and self.num_queries > shortest:
            raise ValueError(
                f"num_queries must be at most the keys of the shortest source ({shortest}), for "
                f"each is asked for once, got {self.num_queries}"
            )

    def draw(self, random: np.random.Generator, length: int, split: str) -> Row:
        keys = random.choice(self.num_keys, length, replace=False)
        values = random.choice(self.num_values, length)
        asked = random.permutation(length)[: self.num_queries].tolist()

        source = []
        for key, value in zip(keys, values, strict=True):
            source += [f"k{key}", f"v{value}"]
        queries = [f"k{keys[place]}" for place in asked]

        target: list[str] = []
        links = []
        for number, place in enumerate(asked):
            if self.repeat_keys:
                links.append((len(source) + 1 + number, len(target)))
                target.append(queries[number])
            # The value of the pair at a place follows its key.
            links.append((2 * place + 1, len(target)))
            target.append(f"v{values[place]}")
        return row_of_words([*source, SEPARATOR, *queries], target, links)


@dataclass(kw_only=True)
class FlipFlopCorpus(DrawnCorpus):
    """Flip-flop sequences (Liu et al. 2023, section 3), from a source to a target.

    The source is a sequence of instructions: `w 1` writes a bit, `i 0` is to be ignored, and `r`
    reads; the target is the bit that was written last before each `r`: `w 1 i 0 r w 0 i 1 r` ->
    `1 0`. The first instruction writes and the last one reads. The others ignore with the
    probability `ignore`, and write and read with half of the rest each. Each bit of the target is
    aligned with the bit that was written last.

    min_length, max_length: instructions of a source.
    ignore: the probability of an instruction to ignore; the paper trains with 0.8.
    test_ignore: in the test split, where it differs; the paper tests with 0.98 (sparse) and 0.1
        (dense); null is the same as in training.
    """

    rouge = None

    ignore: Probability
    test_ignore: Probability | None

    def __post_init__(self) -> None:
        super().__post_init__()
        for prefix, split in {"": "train", "test_": "test"}.items():
            least, _ = self.lengths[split]
            if least < 2:
                raise ValueError(
                    f"{prefix}min_length must be at least 2, an instruction that writes and one "
                    f"that reads, got {least}"
                )

    def draw(self, random: np.random.Generator, length: int, split: str) -> Row:
        ignore = self.ignore
        if split == "test" and self.test_ignore is not None:
            ignore = self.test_ignore
        others = (1 - ignore) / 2
        between = random.choice([WRITE, READ, IGNORE], length - 2, p=[others, others, ignore])

        source: list[str] = []
        target: list[str] = []
        links = []
        written = 0  # the place of the bit that was written last
        for instruction in [WRITE, *between.tolist(), READ]:
            source.append(instruction)
            if instruction == READ:
                links.append((written, len(target)))
                target.append(source[written])
                continue
            source.append(str(random.integers(2)))
            if instruction == WRITE:
                written = len(source) - 1
        return row_of_words(source, target, links)
