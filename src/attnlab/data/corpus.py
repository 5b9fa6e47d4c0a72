"""The base class of parallel corpora, and what all corpora share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from attnlab.data.cleaning import Cleaning
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets

SPLITS = ("train", "validation", "test")

BleuTokenize = Literal["none", "13a", "intl", "char", "zh"]
"""Tokenisers of sacrebleu that torchmetrics supports too and that need no further package."""


class Corpus(ABC):
    """A parallel corpus. Its constructor sets the attributes.

    source_language, target_language: CLDR codes such as `de` or `ko_KR`, None where there is no language.
    """

    tokenizer: TokenizerTrainer
    bleu_tokenize: BleuTokenize
    cleaning: Cleaning
    source_language: str | None
    target_language: str | None

    @abstractmethod
    def load(self) -> dict[str, datasets.Dataset]:
        """The raw pairs: a dataset for each of `SPLITS`, with the text columns `source` and `target`.

        A corpus with known alignments adds `source_spans` and `target_spans`: per pair a list of
        [start, end) character spans of fields, the i-th of the source aligned with the i-th of the target.
        """


def split_sizes(num_pairs: int, validation_fraction: float, test_fraction: float) -> tuple[int, int, int]:
    """The numbers of pairs for training, validation and test, each at least 1."""
    validation, test = round(num_pairs * validation_fraction), round(num_pairs * test_fraction)
    if min(validation, test, num_pairs - validation - test) < 1:
        raise ValueError(
            "validation_fraction and test_fraction must leave at least one pair in each split, got "
            f"{validation_fraction} and {test_fraction} of {num_pairs} pairs"
        )
    return num_pairs - validation - test, validation, test
