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
        lengths = (self.min_length, self.max_length)
        test_lengths = (
            self.test_min_length or self.min_length,
            self.test_max_length or self.max_length,
        )
        for prefix, (least, most) in (("", lengths), ("test_", test_lengths)):
            if least > most:
                raise ValueError(
                    f"{prefix}min_length must be at most {prefix}max_length ({most}), got {least}"
                )
        self.sizes = split_sizes(self.num_pairs, self.validation_fraction, self.test_fraction)
        # The number of different sequences by length.
        count = math.perm if self.distinct else pow
        self.stock, self.test_stock = (
            {n: count(self.num_symbols, n) for n in range(least, most + 1)}
            for least, most in (lengths, test_lengths)
        )

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # slow to import, and not needed to check a config

        random = np.random.default_rng(self.seed)
        used: dict[int, set[bytes]] = {}
        train, validation, test = self.sizes
        # The test split first: its lengths may be few. The others share what is drawn, to be alike.
        tested = [self._draw(random, self.test_stock, used) for _ in range(test)]
        others = [self._draw(random, self.stock, used) for _ in range(train + validation)]
        others = [others[i] for i in random.permutation(len(others))]
        drawn = (others[:train], others[train:], tested)
        return {
            split: datasets.Dataset.from_list([self._pair(sequence) for sequence in sequences])
            for split, sequences in zip(SPLITS, drawn, strict=True)
        }

    def _draw(
        self, random: np.random.Generator, stock: dict[int, int], used: dict[int, set[bytes]]
    ) -> np.ndarray:
        free = [n for n, number in stock.items() if len(used.get(n, ())) < number]
        if not free:
            raise ExperimentError(
                "data.num_pairs: there are too few different sequences; choose fewer, or longer "
                "ones"
            )
        length = int(random.choice(free))
        taken = used.setdefault(length, set())
        while (
            sequence := random.choice(self.num_symbols, length, replace=not self.distinct)
        ).tobytes() in taken:
            pass
        taken.add(sequence.tobytes())
        return sequence

    def _pair(self, sequence: np.ndarray) -> dict[str, object]:
        symbols = [self._symbol(int(i)) for i in sequence]
        ends = np.cumsum([len(symbol) + 1 for symbol in symbols]) - 1
        spans = [
            [int(end) - len(symbol), int(end)] for end, symbol in zip(ends, symbols, strict=True)
        ]
        mirrored = [[int(ends[-1]) - end, int(ends[-1]) - start] for start, end in spans]
        return {
            "source": " ".join(symbols),
            "target": " ".join(reversed(symbols) if self.reverse else symbols),
            "source_spans": spans,
            "target_spans": mirrored if self.reverse else spans,
        }

    def _symbol(self, i: int) -> str:
        return string.ascii_lowercase[i] if self.num_symbols <= 26 else f"s{i}"


class CopyCorpus(SequenceCorpus):
    """The target is the source: `a c b` -> `a c b`."""

    reverse = False


class ReverseCorpus(SequenceCorpus):
    """The target is the source from its end: `a c b` -> `b c a`."""

    reverse = True
