"""Sentence pairs of any number, drawn at random.

They are written as users have them: two parallel text files for each split.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_CHUNK = 50_000  # pairs drawn at once: memory does not grow with the corpus
# Mean and deviation of the logarithm of the lengths of Multi30k's German captions: a median of 12
# tokens, and one in a hundred above 25.
_LOG_LENGTH = (2.47, 0.32)
LONGEST = 64


@dataclass(frozen=True)
class GeneratedCorpus:
    """A corpus with word frequencies by Zipf's law and sentence lengths like Multi30k's.

    Source and target words are independent of each other.

    pairs: of the training split; validation and test have `evaluation_pairs` each.
    words: kinds of words on each side.
    exponent: of Zipf's law; 0 makes all words equally frequent.
    length: of every sentence, in tokens; None draws lengths like Multi30k's.
    """

    pairs: int
    words: int = 30_000
    length: int | None = None
    exponent: float = 1.0
    evaluation_pairs: int = 200
    seed: int = 1

    def write(self, folder: Path) -> Path:
        """Write `train.de` beside `train.en` and so on, and return the folder.

        The same settings give the same bytes.
        """
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(self.seed)
        vocabulary = np.array([_word(rank) for rank in range(self.words)], dtype=object)
        # With Mandelbrot's shift: the first few words are not most of the text.
        frequencies = (np.arange(self.words) + 2.7) ** -self.exponent
        reach = np.cumsum(frequencies) / frequencies.sum()
        for split in ("train", "validation", "test"):
            left = self.pairs if split == "train" else self.evaluation_pairs
            with (
                (folder / f"{split}.de").open("w") as source,
                (folder / f"{split}.en").open("w") as target,
            ):
                while left:
                    pairs = min(left, _CHUNK)
                    left -= pairs
                    for file, lengths in zip(
                        (source, target), self._lengths(random, pairs), strict=True
                    ):
                        words = vocabulary[
                            np.searchsorted(reach, random.random(int(lengths.sum())))
                        ]
                        ends = np.cumsum(lengths)
                        sentences = zip(ends - lengths, ends, strict=True)
                        file.writelines(
                            " ".join(words[start:end]) + "\n" for start, end in sentences
                        )
        return folder

    def _lengths(
        self, random: np.random.Generator, pairs: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(pairs,) of the sources and of the targets, which are alike."""
        if self.length is not None:
            lengths = np.full(pairs, self.length)
            return lengths, lengths
        source = random.lognormal(*_LOG_LENGTH, pairs)
        target = source * random.lognormal(0.05, 0.17, pairs)
        return _whole(source), _whole(target)


def _whole(lengths: NDArray[np.float64]) -> NDArray[np.int64]:
    return lengths.round().astype(np.int64).clip(1, LONGEST)


def _word(rank: int) -> str:
    """A word of its own for each rank; frequent ones are short."""
    letters = string.ascii_lowercase[rank % 26]
    while rank := rank // 26:
        letters += string.ascii_lowercase[rank % 26]
    return letters + "en"
