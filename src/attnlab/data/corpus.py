"""What every corpus is: three splits of raw sentence pairs, and how they are to be tokenised and judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from attnlab.data.cleaning import Cleaning
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets

SPLITS = ("train", "validation", "test")

BleuTokenize = Literal["none", "13a", "intl", "char", "zh"]
"""sacrebleu's tokenisers that torchmetrics knows too and that need no further package."""


class Corpus(ABC):
    """A parallel corpus. The attributes are set by the constructor of each.

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

        A corpus that knows its alignments adds `source_spans` and `target_spans`: per pair a list of
        [start, end) character spans of fields, the i-th of the source aligned with the i-th of the target.
        """
