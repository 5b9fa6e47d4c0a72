"""The lessons' corpus: sentence pairs of small grammars, with gold links, in three directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from attnlab.data.corpus import SPLITS, BleuTokenize, Cleaning, Corpus, Limit, split_sizes
from attnlab.data.grammars import english_french, german_english, korean_english
from attnlab.data.grammars.sentence import Grammar, SentencePair
from attnlab.data.tokenizer import TokenizerTrainer
from attnlab.errors import ExperimentError

if TYPE_CHECKING:
    import datasets

Languages = Literal["en-fr", "de-en", "ko-en"]
_GRAMMARS: dict[Languages, Callable[[], Grammar]] = {
    "en-fr": english_french.grammar,
    "de-en": german_english.grammar,
    "ko-en": korean_english.grammar,
}


@dataclass
class LessonCorpus(Corpus):
    """Sentences of a small grammar and their translations, with gold links between the words.

    The first pair of training and of test is one and the same, the sentence that lectures show:
    `I am a student` → `je suis étudiant`, `Ich möchte ein Bier` → `I'd like a beer`, `저는
    학생입니다` → `I am a student`. The model has learnt what is looked at there, and a test score
    counts that pair too. No other pair occurs twice. Each word of validation and test occurs in
    training.

    languages: source and target.
    handful: sixteen sentences of a pattern or two, the same ones in all three splits: models
        with states of four learn them by heart, and their validation says how well. The settings
        that divide the pairs then have no meaning.
    num_pairs: over the three splits, as evenly over the patterns of the grammar as it has
        sentences.
    validation_fraction, test_fraction: the share of the pairs that the split gets.
    seed: of the choice of sentences.
    """

    # The sentences are composed already. A model's users may type decomposed Hangul and accents.
    cleaning = Cleaning(unicode="nfc", whitespace="keep", max_characters=None)
    rouge = None

    languages: Languages
    handful: bool
    num_pairs: Annotated[int, Field(ge=3)]
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
        self.source_language, self.target_language = self.languages.split("-")

    def load(self) -> dict[str, datasets.Dataset]:
        import datasets  # slow to import, and not needed to check a config

        splits = {}
        for split, pairs in zip(SPLITS, self._pairs_of_splits(), strict=True):
            splits[split] = datasets.Dataset.from_list([_row(pair) for pair in pairs])
        return splits

    def _pairs_of_splits(self) -> list[list[SentencePair]]:
        """The pairs of training, validation and test."""
        grammar = _GRAMMARS[self.languages]()
        if self.handful:
            return [grammar.handful] * len(SPLITS)
        return self._divided(grammar)

    def _divided(self, grammar: Grammar) -> list[list[SentencePair]]:
        random = np.random.default_rng(self.seed)
        drawn = _drawn(grammar, self.num_pairs - 2, random)
        if len(drawn) < self.num_pairs - 2:
            raise ExperimentError(
                f"data.num_pairs: the grammar of {self.languages} has {len(drawn) + 1} different "
                f"sentences; choose at most {len(drawn) + 2} (one stands in training and in test)"
            )

        # What has a word that no pair before it has must be learnt.
        known = _words_of(grammar.lecture)
        with_new_words: list[SentencePair] = []
        others: list[SentencePair] = []
        for pair in drawn:
            new = _words_of(pair) - known
            known |= new
            if new:
                with_new_words.append(pair)
            else:
                others.append(pair)

        train, validation, _ = self.sizes
        in_training = train - 1 - len(with_new_words)
        if in_training < 0:
            raise ExperimentError(
                f"data.num_pairs: {len(with_new_words) + 1} pairs are needed to show each word, "
                f"and the train split has {train}; choose more, or smaller fractions"
            )
        learnt = [grammar.lecture, *with_new_words, *others[:in_training]]
        rest = others[in_training:]
        return [learnt, rest[:validation], [grammar.lecture, *rest[validation:]]]


def _drawn(grammar: Grammar, number: int, random: np.random.Generator) -> list[SentencePair]:
    """Up to so many sentences in random order, from each pattern in turn, without the lecture's."""
    shuffled = [_shuffled(pattern, random) for pattern in grammar.patterns]
    drawn: list[SentencePair] = []
    for pair in _in_turn(shuffled):
        if len(drawn) == number:
            break
        if pair.source_text != grammar.lecture.source_text:
            drawn.append(pair)
    return _shuffled(drawn, random)


def _in_turn(patterns: list[list[SentencePair]]) -> Iterator[SentencePair]:
    """The first of each pattern, then the second of each that has one, and so on."""
    longest = max(len(pattern) for pattern in patterns)
    for i in range(longest):
        for pattern in patterns:
            if i < len(pattern):
                yield pattern[i]


def _shuffled(pairs: list[SentencePair], random: np.random.Generator) -> list[SentencePair]:
    return [pairs[i] for i in random.permutation(len(pairs))]


def _words_of(pair: SentencePair) -> set[tuple[str, str]]:
    """The words of both sides, as the lower-casing tokenizer of the source sees them."""
    source = {("source", word.text.lower()) for word in pair.source}
    return source | {("target", word.text) for word in pair.target}


def _row(pair: SentencePair) -> dict[str, str]:
    return {"source": pair.source_text, "target": pair.target_text, "alignments": pair.links}
