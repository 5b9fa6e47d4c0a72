"""Corpora of random sequences to copy or to reverse.

They serve for diagnosis, and to test generalisation to other lengths.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from attnlab.data.corpus import AS_IT_IS, SPLITS, BleuTokenize, Corpus, Limit, split_sizes
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

Length = Annotated[int, Field(ge=1, le=1_000)]


@dataclass
class SequenceCorpus(Corpus):
    """Random sequences with aligned symbols; each occurs once in all splits together.

    num_pairs: over the three splits.
    num_symbols: in the alphabet.
    min_length, max_length: symbols a sequence; all lengths are equally likely.
    test_min_length, test_max_length: of the test split, where they differ; null is the same as in
        training.
    distinct: no symbol twice; sequences of all symbols are permutations of each other (Snell et al.
        2021, section 3.3).
    validation_fraction, test_fraction: the share of the pairs that the split gets.
    seed: of the sequences.
    """

    reverse: ClassVar[bool]
    cleaning = AS_IT_IS
    rouge = source_language = target_language = None

    num_pairs: Annotated[int, Field(ge=3)]
    num_symbols: Annotated[int, Field(ge=2, le=10_000)]
    min_length: Length
    max_length: Length
    test_min_length: Length | None
    test_max_length: Length | None
    distinct: bool
    validation_fraction: Annotated[float, Field(gt=0, lt=1)]
    test_fraction: Annotated[float, Field(gt=0, lt=1)]
    seed: Annotated[int, Field(ge=0)]
    bleu_tokenize: BleuTokenize
    tokenizer: TokenizerTrainer
    limit: Limit = None
    source_tokenizer: TokenizerTrainer | None = None
    target_tokenizer: TokenizerTrainer | None = None

    def __post_init__(self) -> None:
        self.sizes = split_sizes(self.num_pairs, self.validation_fraction, self.test_fraction)
        # The number of different sequences of each length, for training and for test.
        self.stock = self._count_sequences(self.min_length, self.max_length, "")
        self.test_stock = self._count_sequences(
            self.test_min_length or self.min_length,
            self.test_max_length or self.max_length,
            "test_",
        )

    def _count_sequences(self, least: int, most: int, prefix: str) -> dict[int, int]:
        """{length: the number of different sequences}; prefix: of the settings, for an error."""
        if least > most:
            raise ValueError(
                f"{prefix}min_length must be at most {prefix}max_length ({most}), got {least}"
            )
        count = math.perm if self.distinct else pow
        return {length: count(self.num_symbols, length) for length in range(least, most + 1)}

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # slow to import, and not needed to check a config

        random = np.random.default_rng(self.seed)
        used: dict[int, set[bytes]] = {}
        train, validation, test = self.sizes
        # The test split first: its lengths may be few. The others share what is drawn, to be alike.
        tested = [self._draw(random, self.test_stock, used) for _ in range(test)]
        others = [self._draw(random, self.stock, used) for _ in range(train + validation)]
        others = [others[i] for i in random.permutation(len(others))]

        splits = {}
        for split, sequences in zip(SPLITS, (others[:train], others[train:], tested), strict=True):
            pairs = [self._pair(sequence) for sequence in sequences]
            splits[split] = datasets.Dataset.from_list(pairs)
        return splits

    def _draw(
        self, random: np.random.Generator, stock: dict[int, int], used: dict[int, set[bytes]]
    ) -> np.ndarray:
        """A sequence that is not in `used`, to which it is added.

        stock: {length: the number of different sequences}.
        """
        free = [length for length, count in stock.items() if len(used.get(length, ())) < count]
        if not free:
            raise ExperimentError(
                "data.num_pairs: there are too few different sequences; choose fewer, or longer "
                "ones"
            )
        length = int(random.choice(free))
        taken = used.setdefault(length, set())
        while True:
            sequence = random.choice(self.num_symbols, length, replace=not self.distinct)
            if sequence.tobytes() not in taken:
                taken.add(sequence.tobytes())
                return sequence

    def _pair(self, sequence: np.ndarray) -> dict[str, object]:
        """A row: the two texts, and the characters of each symbol in both."""
        symbols = [self._symbol(int(i)) for i in sequence]
        source = " ".join(symbols)
        spans = []
        start = 0
        for symbol in symbols:
            end = start + len(symbol)
            spans.append([start, end])
            start = end + 1  # a space stands between two
        if not self.reverse:
            return {
                "source": source,
                "target": source,
                "source_spans": spans,
                "target_spans": spans,
            }

        length = len(source)
        return {
            "source": source,
            "target": " ".join(reversed(symbols)),
            "source_spans": spans,
            "target_spans": [[length - end, length - start] for start, end in spans],
        }

    def _symbol(self, i: int) -> str:
        """`a`, `b`, ..., or `s0`, `s1`, ... of an alphabet that has more than 26."""
        if self.num_symbols <= len(string.ascii_lowercase):
            return string.ascii_lowercase[i]
        return f"s{i}"


class CopyCorpus(SequenceCorpus):
    """The target is the source: `a c b` -> `a c b`."""

    reverse = False


class ReverseCorpus(SequenceCorpus):
    """The target is the source from its end: `a c b` -> `b c a`."""

    reverse = True
