"""The lessons' film reviews: labelled sentences of a small grammar, in English or Korean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from attnlab.data.corpus import SPLITS, Limit, SentenceCleaning, SentenceCorpus, split_sizes
from attnlab.data.grammars import reviews
from attnlab.data.grammars.reviews import Review
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

Language = Literal["en", "ko"]
_GRAMMARS: dict[Language, Callable[[], list[Review]]] = {
    "en": reviews.english,
    "ko": reviews.korean_reviews,
}


@dataclass
class LessonReviews(SentenceCorpus):
    """Short film reviews that are positive or negative, each once in all splits together.

    A review says one opinion, or denies it: `the music was not good` is negative. So two words
    decide, wherever they stand, and a classifier's attention should find them.

    language: of the reviews.
    num_sentences: over the three splits.
    validation_fraction, test_fraction: the share of the sentences that the split gets.
    seed: of the choice of sentences.
    """

    # The reviews are composed already. A model's users may type decomposed Hangul.
    cleaning = SentenceCleaning(unicode="nfc", whitespace="keep", max_characters=None)

    language: Language
    num_sentences: Annotated[int, Field(ge=3)]
    validation_fraction: Annotated[float, Field(gt=0, lt=1)]
    test_fraction: Annotated[float, Field(gt=0, lt=1)]
    seed: Annotated[int, Field(ge=0)]
    tokenizer: TokenizerTrainer
    limit: Limit = None

    def __post_init__(self) -> None:
        self.sizes = split_sizes(self.num_sentences, self.validation_fraction, self.test_fraction)

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # slow to import, and not needed to check a config

        all_reviews = _GRAMMARS[self.language]()
        if len(all_reviews) < self.num_sentences:
            raise ExperimentError(
                f"data.num_sentences: the grammar has {len(all_reviews)} different sentences; "
                f"choose at most so many, got {self.num_sentences}"
            )
        order = np.random.default_rng(self.seed).permutation(len(all_reviews))
        drawn = [all_reviews[i] for i in order]

        splits = {}
        start = 0
        for split, size in zip(SPLITS, self.sizes, strict=True):
            rows = [review._asdict() for review in drawn[start : start + size]]
            splits[split] = datasets.Dataset.from_list(rows)
            start += size
        return splits
