"""Trainers of tokenizers (words, characters, BPE pieces), and tokenizers taken from a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tokenizers
from pydantic import Field
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import trainers as learners

from attnlab.batch import SPECIAL_TOKENS, UNK
from attnlab.data.tokenizer import NUMBERED, WORD_START, Tokenizer, TokenizerTrainer
from attnlab.errors import ExperimentError

# A word with its start mark, or one punctuation mark: no piece spans two matches.
_WORD_OR_MARK = rf"{WORD_START}?\w+|{WORD_START}?[^\w{WORD_START}]|{WORD_START}"
_TAG = r"<[^<>\s]+>"
_UNKNOWN = SPECIAL_TOKENS[UNK]
# Arguments of every trainer of the library.
_LEARNER: dict[str, Any] = {"special_tokens": list(SPECIAL_TOKENS), "show_progress": False}


@dataclass(frozen=True)
class _Trainer(TokenizerTrainer):
    """What all tokenisers that learn have.

    lowercase: makes all text lower case.
    normalization: the Unicode normal form of all text.
    joint: one vocabulary for both sides.
    vocabulary_size: tokens at most, the special ones counted; null is no limit.
    min_frequency: how often a token occurs at least.
    """

    lowercase: bool = False
    normalization: Literal["none", "nfc", "nfd", "nfkc", "nfkd"] = "none"
    joint: bool = False

    def normalizers(self) -> list[Any]:
        """The steps that every text goes through first, in order."""
        steps: list[Any] = []
        if self.normalization != "none":
            normal_form = getattr(normalizers, self.normalization.upper())
            steps.append(normal_form())
        if self.lowercase:
            steps.append(normalizers.Lowercase())
        return steps

    def mark_word_starts(self, backend: tokenizers.Tokenizer) -> None:
        """Turn spaces into marks, so that the joined tokens give the text back.

        A mark in the text becomes `_`.
        """
        steps = [
            *self.normalizers(),
            normalizers.Replace(WORD_START, "_"),
            normalizers.Replace(" ", WORD_START),
            normalizers.Prepend(WORD_START),
        ]
        backend.normalizer = normalizers.Sequence(steps)
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD_OR_MARK), "isolated")
        backend.decoder = decoders.Sequence(
            [decoders.Replace(WORD_START, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )


@dataclass(frozen=True)
class WordTrainer(_Trainer):
    """Whole words.

    split: `whitespace` for a corpus that comes tokenised; `punctuation` for raw text, where
        punctuation marks are tokens of their own and a hidden mark at the start of words keeps the
        text restorable.
    numbered_unknown: how many unknown words of a source have tokens of their own, `<unk:1>` and so
        on, which stand in its target, too: what a model can copy though no vocabulary has it. 0 for
        none.
    """

    split: Literal["whitespace", "punctuation"] = "punctuation"
    vocabulary_size: Annotated[int, Field(ge=5)] | None = None
    min_frequency: Annotated[int, Field(ge=1)] = 2
    numbered_unknown: Annotated[int, Field(ge=0, le=1000)] = 0

    def __post_init__(self) -> None:
        smallest = len(SPECIAL_TOKENS) + 1 + self.numbered_unknown
        if self.vocabulary_size is not None and self.vocabulary_size < smallest:
            raise ValueError(
                f"vocabulary_size counts the {len(SPECIAL_TOKENS)} special tokens and the "
                f"numbered_unknown, so it must be at least {smallest} here, got "
                f"{self.vocabulary_size}"
            )

    def train(self, texts: Iterable[str]) -> Tokenizer:
        backend = tokenizers.Tokenizer(models.WordLevel({}, unk_token=_UNKNOWN))
        if self.split == "whitespace":
            backend.normalizer = normalizers.Sequence(self.normalizers())
            backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        else:
            self.mark_word_starts(backend)
        return _train_words(
            backend, texts, self.vocabulary_size, self.min_frequency, self.numbered_unknown
        )


@dataclass(frozen=True)
class CharacterTrainer(_Trainer):
    """Single characters (code points), the space among them."""

    vocabulary_size: Annotated[int, Field(ge=5)] | None = None
    min_frequency: Annotated[int, Field(ge=1)] = 1

    def train(self, texts: Iterable[str]) -> Tokenizer:
        backend = tokenizers.Tokenizer(models.WordLevel({}, unk_token=_UNKNOWN))
        backend.normalizer = normalizers.Sequence(self.normalizers())
        backend.pre_tokenizer = self.splits()
        backend.decoder = decoders.Fuse()
        return _train_words(backend, texts, self.vocabulary_size, self.min_frequency)

    def splits(self) -> pre_tokenizers.PreTokenizer:
        """What takes a text apart."""
        return pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")


@dataclass(frozen=True)
class TaggedCharacterTrainer(CharacterTrainer):
    """Single characters, and whole tags such as `<num=PL>`, without the white space behind it."""

    def splits(self) -> pre_tokenizers.PreTokenizer:
        # \K leaves the tag out of what is found.
        space_behind_tag = pre_tokenizers.Split(Regex(rf"{_TAG}\K\s+"), "removed")
        tags_and_characters = pre_tokenizers.Split(Regex(rf"{_TAG}|[\s\S]"), "isolated")
        return pre_tokenizers.Sequence([space_behind_tag, tags_and_characters])


@dataclass(frozen=True)
class BpeTrainer(_Trainer):
    """Pieces of words by byte pair encoding (Sennrich, Haddow and Birch 2016), on characters.

    min_frequency: of a pair of pieces, to be merged.
    """

    vocabulary_size: Annotated[int, Field(ge=5)] = 8_000
    min_frequency: Annotated[int, Field(ge=1)] = 2

    def train(self, texts: Iterable[str]) -> Tokenizer:
        backend = tokenizers.Tokenizer(models.BPE(unk_token=_UNKNOWN))
        self.mark_word_starts(backend)
        trainer = learners.BpeTrainer(
            vocab_size=self.vocabulary_size, min_frequency=self.min_frequency, **_LEARNER
        )
        backend.train_from_iterator(texts, trainer)
        return _finished(json.loads(backend.to_str()))


def _train_words(
    backend: tokenizers.Tokenizer,
    texts: Iterable[str],
    vocabulary_size: int | None,
    min_frequency: int,
    numbered_unknown: int = 0,
) -> Tokenizer:
    """Learn a vocabulary of whole words or characters, as the backend splits the texts.

    The numbered unknown words count in its size.
    """
    no_limit = 2**31
    of_words = no_limit if vocabulary_size is None else vocabulary_size - numbered_unknown
    trainer = learners.WordLevelTrainer(
        vocab_size=of_words, min_frequency=min_frequency, **_LEARNER
    )
    backend.train_from_iterator(texts, trainer)
    state = json.loads(backend.to_str())

    # Special tokens have ids 0 to 3 without a gap, even where the library found them in the text,
    # and numbered unknown words the ids behind them. Text that reads like those is unknown text.
    learnt = state["model"]["vocab"]
    by_id = sorted(learnt, key=learnt.__getitem__)
    numbered = [NUMBERED.format(number) for number in range(1, numbered_unknown + 1)]
    reserved = re.compile(f"{WORD_START}?{NUMBERED.format('[0-9]+')}")
    words = [w for w in by_id if w not in SPECIAL_TOKENS and not reserved.fullmatch(w)]
    vocabulary = [*SPECIAL_TOKENS, *numbered, *words]
    state["model"]["vocab"] = {word: i for i, word in enumerate(vocabulary)}
    return _finished(state)


def _finished(state: dict[str, Any]) -> Tokenizer:
    """The tokenizer without the library's special tokens, which it would find in users' texts."""
    without_special = {**state, "added_tokens": []}
    return Tokenizer(tokenizers.Tokenizer.from_str(json.dumps(without_special)))


@dataclass(frozen=True)
class ModelTokenizers(TokenizerTrainer):
    """Takes the tokenisers of a trained model, so that it can be trained further on other text.

    folder: a model folder.
    joint: whether that model has one vocabulary for both sides.
    vocabulary_size, min_frequency: presets of data set them for the tokenisers that learn; here
        they change nothing.
    """

    folder: Annotated[str, Field(min_length=1)]
    joint: bool = False
    vocabulary_size: int | None = None
    min_frequency: int | None = None

    @property
    def files(self) -> list[Path]:
        return sorted(Path(self.folder).expanduser().glob("*tokenizer.json"))

    def train(self, texts: Iterable[str]) -> Tokenizer:
        return self._load("tokenizer.json")

    def train_sides(self, *sides: Iterator[str]) -> list[Tokenizer]:
        if len(sides) == 1:
            return [self._load("tokenizer.json")]
        return [self._load("source_tokenizer.json"), self._load("target_tokenizer.json")]

    def _load(self, name: str) -> Tokenizer:
        path = Path(self.folder).expanduser() / name
        if not path.is_file():
            raise ExperimentError(
                f"data.tokenizer.folder: there is no {path}; give the folder of a model of this "
                "task"
            )
        return Tokenizer.load(path)
