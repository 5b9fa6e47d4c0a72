"""Corpora of tagged sentences, and a small one."""

from __future__ import annotations

import random
from abc import abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from attnlab.data.corpus import RawCorpus, SentenceCleaning, split_sizes
from attnlab.data.tokenizer import TokenizerTrainer

if TYPE_CHECKING:
    import datasets


class TaggedCorpus(RawCorpus):
    """Tagged sentences.

    Its tokenizer must leave words whole, as `data/tokenizer=whitespace` does.
    """

    required_columns = ("text", "tags")

    cleaning: SentenceCleaning

    @abstractmethod
    def load(self) -> dict[str, datasets.Dataset]:
        """A dataset for each split, with columns `text` and `tags`, both split at white space."""


@dataclass
class ComparisonsCorpus(TaggedCorpus):
    """Letters, each with a tag that compares it with the next: `up`, `down`, `same`, `end`.

    num_sentences: over the three splits.
    longest: letters of the longest sentence.
    seed: of the letters.
    """

    num_sentences: Annotated[int, Field(ge=10)]
    longest: Annotated[int, Field(ge=1, le=100)]
    seed: int
    tokenizer: TokenizerTrainer
    cleaning: SentenceCleaning = field(default_factory=SentenceCleaning)

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # slow to import, and not needed to check a config

        chance = random.Random(self.seed)
        rows = []
        for _ in range(self.num_sentences):
            letters = chance.choices("abcdefgh", k=chance.randint(1, self.longest))
            tags = [compared(letter, following) for letter, following in pairwise(letters)]
            rows.append({"text": " ".join(letters), "tags": " ".join([*tags, "end"])})
        train, validation, _ = split_sizes(self.num_sentences, 0.1, 0.1)
        return {
            "train": datasets.Dataset.from_list(rows[:train]),
            "validation": datasets.Dataset.from_list(rows[train : train + validation]),
            "test": datasets.Dataset.from_list(rows[train + validation :]),
        }


def compared(letter: str, following: str) -> str:
    if letter == following:
        return "same"
    return "up" if following > letter else "down"
