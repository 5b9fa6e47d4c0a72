"""The base class of corpora whose pairs are drawn at random, and rows of aligned words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from attnlab.data.corpus import AS_IT_IS, SPLITS, BleuTokenize, Corpus, Limit, split_sizes
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

Length = Annotated[int, Field(ge=1, le=1_000)]
Row = dict[str, Any]
"""A raw row: `source` and `target`, and their spans where alignments are known."""
Link = tuple[int, int]  # (number of a word of the source, number of a word of the target)

PATIENCE = 1_000
"""Sources that are drawn one after the other, all of them known, before a corpus gives up."""


@dataclass(kw_only=True)
class DrawnCorpus(Corpus):
    """Pairs that are drawn at random; no source occurs twice in all splits together.

    num_pairs: over the three splits.
    min_length, max_length: the range of the lengths, which are equally likely.
    test_min_length, test_max_length: of the test split, where they differ; null is the same as in
        training.
    validation_fraction, test_fraction: the share of the pairs that the split gets.
    seed: of the choice of pairs.
    """

    cleaning = AS_IT_IS
    source_language = target_language = None

    num_pairs: Annotated[int, Field(ge=3)]
    min_length: Length
    max_length: Length
    test_min_length: Length | None
    test_max_length: Length | None
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
        in_training = (self.min_length, self.max_length)
        in_test = (
            self.test_min_length or self.min_length,
            self.test_max_length or self.max_length,
        )
        for prefix, (least, most) in {"": in_training, "test_": in_test}.items():
            if least > most:
                raise ValueError(
                    f"{prefix}min_length must be at most {prefix}max_length ({most}), got {least}"
                )
        # (least, most) of each split
        self.lengths = {"train": in_training, "validation": in_training, "test": in_test}

    @property
    def longest(self) -> int:
        """The greatest length of any split."""
        return max(most for _, most in self.lengths.values())

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # slow to import, and not needed to check a config

        random = np.random.default_rng(self.seed)
        train, validation, test = self.sizes
        # The test split first: its sources may be few. The others take turns, to be alike.
        others = random.permutation(["train"] * train + ["validation"] * validation).tolist()
        rows: dict[str, list[Row]] = {split: [] for split in SPLITS}
        known: set[str] = set()
        for split in ["test"] * test + others:
            row = self._new_row(random, split, known)
            known.add(row["source"])
            rows[split].append(row)
        return {split: datasets.Dataset.from_list(rows[split]) for split in SPLITS}

    def _new_row(self, random: np.random.Generator, split: str, known: set[str]) -> Row:
        """A row of a split whose source is not among the known ones."""
        least, most = self.lengths[split]
        for _ in range(PATIENCE):
            length = int(random.integers(least, most + 1))
            row = self.draw(random, length, split)
            if row["source"] not in known:
                return row
        raise ExperimentError(
            f"data.num_pairs: there are too few different sources; {len(known)} were found, and "
            f"{self.num_pairs} are needed; choose fewer, longer ones, or a larger choice of symbols"
        )

    @abstractmethod
    def draw(self, random: np.random.Generator, length: int, split: str) -> Row:
        """A row of a source of this length, for this split."""


def row_of_words(source: Sequence[str], target: Sequence[str], links: Sequence[Link]) -> Row:
    """The row of two sequences of words, with a space between two, and links between the words."""
    source_spans = _spans(source)
    target_spans = _spans(target)
    return {
        "source": " ".join(source),
        "target": " ".join(target),
        "source_spans": [source_spans[s] for s, _ in links],
        "target_spans": [target_spans[t] for _, t in links],
    }


def _spans(words: Sequence[str]) -> list[list[int]]:
    """The [start, end) characters of each word of a text with a space between two."""
    spans = []
    start = 0
    for word in words:
        end = start + len(word)
        spans.append([start, end])
        start = end + 1
    return spans
