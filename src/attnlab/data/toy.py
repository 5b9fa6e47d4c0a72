"""Made-up sequences to copy or to reverse, for diagnosis and for generalisation to other lengths."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from attnlab.data.cleaning import AS_IT_IS
from attnlab.data.corpus import SPLITS, BleuTokenize, Corpus
from attnlab.data.dates import split_sizes
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets


class CopyCorpus(Corpus):
    """The target is the source: `a c b` -> `a c b`. The i-th symbols are aligned.

    num_symbols: in the alphabet.
    min_length, max_length: symbols a sequence, all lengths alike often.
    test_min_length, test_max_length: of the test split, where they differ; null is the same as in training.
    """

    def __init__(
        self,
        num_pairs: Annotated[int, Field(ge=3)],
        num_symbols: Annotated[int, Field(ge=2, le=10_000)],
        min_length: Annotated[int, Field(ge=1, le=1_000)],
        max_length: Annotated[int, Field(ge=1, le=1_000)],
        test_min_length: Annotated[int, Field(ge=1, le=1_000)] | None,
        test_max_length: Annotated[int, Field(ge=1, le=1_000)] | None,
        validation_fraction: Annotated[float, Field(gt=0, lt=1)],
        test_fraction: Annotated[float, Field(gt=0, lt=1)],
        seed: Annotated[int, Field(ge=0)],
        bleu_tokenize: BleuTokenize,
        tokenizer: TokenizerTrainer,
    ) -> None:
        self._sequences = Sequences(
            num_symbols,
            (min_length, max_length),
            (test_min_length or min_length, test_max_length or max_length),
            split_sizes(num_pairs, validation_fraction, test_fraction),
            seed,
        )
        self.tokenizer, self.bleu_tokenize, self.cleaning = tokenizer, bleu_tokenize, AS_IT_IS
        self.source_language = self.target_language = None

    def load(self) -> dict[str, datasets.Dataset]:
        return self._sequences.load(reverse=False)


class ReverseCorpus(Corpus):
    """The target is the source from its end: `a c b` -> `b c a`. Parameters as those of `CopyCorpus`."""

    def __init__(
        self,
        num_pairs: Annotated[int, Field(ge=3)],
        num_symbols: Annotated[int, Field(ge=2, le=10_000)],
        min_length: Annotated[int, Field(ge=1, le=1_000)],
        max_length: Annotated[int, Field(ge=1, le=1_000)],
        test_min_length: Annotated[int, Field(ge=1, le=1_000)] | None,
        test_max_length: Annotated[int, Field(ge=1, le=1_000)] | None,
        validation_fraction: Annotated[float, Field(gt=0, lt=1)],
        test_fraction: Annotated[float, Field(gt=0, lt=1)],
        seed: Annotated[int, Field(ge=0)],
        bleu_tokenize: BleuTokenize,
        tokenizer: TokenizerTrainer,
    ) -> None:
        self._sequences = Sequences(
            num_symbols,
            (min_length, max_length),
            (test_min_length or min_length, test_max_length or max_length),
            split_sizes(num_pairs, validation_fraction, test_fraction),
            seed,
        )
        self.tokenizer, self.bleu_tokenize, self.cleaning = tokenizer, bleu_tokenize, AS_IT_IS
        self.source_language = self.target_language = None

    def load(self) -> dict[str, datasets.Dataset]:
        return self._sequences.load(reverse=True)


class Sequences:
    """Different random sequences: none of them occurs twice, in one split or in two."""

    def __init__(
        self,
        num_symbols: int,
        lengths: tuple[int, int],
        test_lengths: tuple[int, int],
        sizes: tuple[int, int, int],
        seed: int,
    ) -> None:
        for prefix, (least, most) in (("", lengths), ("test_", test_lengths)):
            if least > most:
                raise ValueError(f"{prefix}min_length must be at most {prefix}max_length ({most}), got {least}")
        stock = {n: num_symbols**n for n in range(lengths[0], lengths[1] + 1)}
        test_stock = {n: num_symbols**n for n in range(test_lengths[0], test_lengths[1] + 1)}
        # The test split draws first; at worst it takes all that it can of what training could use too.
        shared = sum(number for n, number in stock.items() if n in test_stock)
        left = sum(stock.values()) - min(sizes[2], shared)
        for split, size, most in (
            ("test", sizes[2], sum(test_stock.values())),
            ("others", sum(sizes[:2]), left),
        ):
            if size > most:
                raise ValueError(
                    f"num_pairs must not ask for more than there are different sequences: {size} for the "
                    f"{split} of {most} with {num_symbols} symbols in these lengths"
                )
        self.num_symbols, self.sizes, self.seed = num_symbols, sizes, seed
        self.stock, self.test_stock = stock, test_stock

    def load(self, reverse: bool) -> dict[str, datasets.Dataset]:
        import datasets  # a second that checking a config should not pay

        random = np.random.default_rng(self.seed)
        used: dict[int, set[bytes]] = {}
        train, validation, test = self.sizes
        # The test split first: its lengths may be few. The others share what is drawn, to be alike.
        tested = [self._draw(random, self.test_stock, used) for _ in range(test)]
        others = [self._draw(random, self.stock, used) for _ in range(train + validation)]
        others = [others[i] for i in random.permutation(len(others))]
        drawn = (others[:train], others[train:], tested)
        return {
            split: datasets.Dataset.from_list([self._pair(sequence, reverse) for sequence in sequences])
            for split, sequences in zip(SPLITS, drawn, strict=True)
        }

    def _draw(self, random: np.random.Generator, stock: dict[int, int], used: dict[int, set[bytes]]) -> np.ndarray:
        free = [n for n, number in stock.items() if len(used.get(n, ())) < number]
        length = int(random.choice(free))
        taken = used.setdefault(length, set())
        while (sequence := random.integers(self.num_symbols, size=length)).tobytes() in taken:
            pass
        taken.add(sequence.tobytes())
        return sequence

    def _pair(self, sequence: np.ndarray, reverse: bool) -> dict[str, object]:
        symbols = [self._symbol(int(i)) for i in sequence]
        ends = np.cumsum([len(symbol) + 1 for symbol in symbols]) - 1
        spans = [[int(end) - len(symbol), int(end)] for end, symbol in zip(ends, symbols, strict=True)]
        if not reverse:
            return {
                "source": " ".join(symbols),
                "target": " ".join(symbols),
                "source_spans": spans,
                "target_spans": spans,
            }
        mirrored = [[int(ends[-1]) - end, int(ends[-1]) - start] for start, end in spans]
        return {
            "source": " ".join(symbols),
            "target": " ".join(reversed(symbols)),
            "source_spans": spans,
            "target_spans": mirrored,
        }

    def _symbol(self, i: int) -> str:
        return string.ascii_lowercase[i] if self.num_symbols <= 26 else f"s{i}"
