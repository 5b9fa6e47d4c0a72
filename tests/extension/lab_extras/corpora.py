"""A corpus of sentence pairs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from attnlab.data.corpus import Corpus, split_sizes
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets

UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@dataclass
class NumbersCorpus(Corpus):
    """Numbers in digits, to be read digit by digit: `4 0 7` -> `four zero seven`.

    num_pairs: over the three splits.
    digits: of the longest number.
    seed: of the numbers.
    """

    num_pairs: Annotated[int, Field(ge=10)]
    digits: Annotated[int, Field(ge=1, le=30)]
    seed: int
    tokenizer: TokenizerTrainer

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # slow to import, and not needed to check a config

        numbers = random.Random(self.seed)
        pairs = []
        for _ in range(self.num_pairs):
            length = numbers.randint(1, self.digits)
            digits = [numbers.randrange(10) for _ in range(length)]
            source = " ".join(str(digit) for digit in digits)
            target = " ".join(UNITS[digit] for digit in digits)
            pairs.append({"source": source, "target": target})
        train, validation, _ = split_sizes(self.num_pairs, 0.1, 0.1)
        return {
            "train": datasets.Dataset.from_list(pairs[:train]),
            "validation": datasets.Dataset.from_list(pairs[train : train + validation]),
            "test": datasets.Dataset.from_list(pairs[train + validation :]),
        }
