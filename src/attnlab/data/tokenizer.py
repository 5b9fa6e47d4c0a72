"""Text to ids and back, on the `tokenizers` library."""

from __future__ import annotations

import itertools
import json
import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers
from numpy.typing import NDArray

from attnlab.batch import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from attnlab.data.padding import Ragged
from attnlab.errors import ExperimentError

# Whether the library uses threads; it looks before each of its operations. Unset, it would warn at
# each fork (data loaders, two-process training) after it used some.
_PARALLELISM = "TOKENIZERS_PARALLELISM"
os.environ.setdefault(_PARALLELISM, "false")

WORD_START = "▁"
_FEATURE = re.compile(r"<[^<>\s]+>")
NUMBERED = "<unk:{}>"  # the name of the first, second, ... unknown word of a source
Words = Sequence[Sequence[str]]
"""Of each source its numbered unknown words, in their order."""
Ids = Sequence[int] | NDArray[np.integer]


class Surface(NamedTuple):
    """What a token stands for in a text. starts_word: whether white space is before it."""

    text: str
    starts_word: bool = True


UNKNOWN_SURFACE = Surface(SPECIAL_TOKENS[UNK])


@contextmanager
def library_threads() -> Iterator[None]:
    """Within it tokenisers are trained, and encode, on all processors that the process may use.

    What they learn and write does not depend on how many there are; the variable RAYON_NUM_THREADS
    limits it.
    """
    before = os.environ[_PARALLELISM]
    os.environ[_PARALLELISM] = "true"
    try:
        yield
    finally:
        os.environ[_PARALLELISM] = before


class Tokenizer:
    """A trained tokeniser.

    Ids below 4 (`<pad>`, `<unk>`, `<bos>`, `<eos>`) are ours alone: text that happens to say
    `<eos>` is unknown text, never the end of a sentence. So are the ids behind them of numbered
    unknown words, where there are some: the first unknown word of a source is `<unk:1>`, the second
    one `<unk:2>`, wherever they stand in it and in its target (the copyable model of Luong,
    Sutskever et al. 2015, section 3.2). A target that has such a word is known to the letter.

    numbered: how many numbered unknown words there are; 0 for none.
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        for i, token in enumerate(SPECIAL_TOKENS):
            if backend.token_to_id(token) != i:
                raise ValueError(f"{token} must have id {i}, got {backend.token_to_id(token)}")
        self._backend = backend
        self.numbered = 0
        while backend.token_to_id(NUMBERED.format(self.numbered + 1)) == EOS + self.numbered + 1:
            self.numbered += 1
        self._decoder = backend.decoder
        self._names: dict[int, str] = {}  # asking the library for the same ones again takes longer
        # Whether tokens at the start of a word begin with WORD_START, which decoding takes away.
        decoder = json.loads(backend.to_str())["decoder"]
        self._marked = WORD_START in json.dumps(decoder, ensure_ascii=False)
        normalizer = json.dumps(json.loads(backend.to_str())["normalizer"])
        self._lowercases = '"Lowercase"' in normalizer
        self._takes_apart = '"NFD"' in normalizer or '"NFKD"' in normalizer

    @property
    def size(self) -> int:
        """The number of tokens in the vocabulary, the four special ones counted."""
        return self._backend.get_vocab_size(with_added_tokens=False)

    @property
    def feature_ids(self) -> list[int]:
        """The ids of the features in the vocabulary: words in angle brackets, such as `<PL>`."""
        first = EOS + self.numbered + 1
        names = self.tokens(range(first, self.size))
        return [i for i, name in enumerate(names, start=first) if _FEATURE.fullmatch(name)]

    def encode_ids(self, texts: Sequence[str], words: Words | None = None) -> list[list[int]]:
        """The ids of each text, without `<bos>` and `<eos>`.

        words: of a target, the numbered unknown words of its source; None numbers the unknown words
            of the texts themselves, as of sources.
        """
        rows = self.encode_rows(texts, words)
        return [rows[i].tolist() for i in range(len(rows))]

    def encode_rows(self, texts: Sequence[str], words: Words | None = None) -> Ragged:
        """As `encode_ids`, as one flat array, which is faster."""
        encoded = self._encode(texts)
        if self.numbered:
            self._number(encoded, texts, words)
        return encoded

    def _encode(self, texts: Sequence[str]) -> Ragged:
        """The ids of each text, with `<unk>` for each unknown word."""
        encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        rows = Ragged.from_rows([encoding.ids for encoding in encodings])
        # Text that reads like a special token is unknown text.
        ids = np.where(rows.values <= EOS + self.numbered, UNK, rows.values)
        return Ragged(ids, rows.offsets)

    def _number(self, encoded: Ragged, texts: Sequence[str], words: Words | None) -> None:
        """Put the ids of numbered unknown words into encoded texts, in place."""
        unknown = self._unknown(encoded, texts)
        numbered = self._first_ones(unknown) if words is None else words
        for row, (found, known) in enumerate(zip(unknown, numbered, strict=True)):
            ids = {word: EOS + number for number, word in enumerate(known, start=1)}
            for place, word in found.items():
                encoded[row][place] = ids.get(word, UNK)

    def numbered_words(self, texts: Sequence[str]) -> Words:
        """The numbered unknown words of sources, as tokens; `decode` takes those of a source."""
        if not self.numbered:
            return [()] * len(texts)
        return self._first_ones(self._unknown(self._encode(texts), texts))

    def _unknown(self, encoded: Ragged, texts: Sequence[str]) -> list[dict[int, str]]:
        """{place of a token: unknown word} of each text."""
        found: list[dict[int, str]] = []
        for row, text in enumerate(texts):
            places = np.flatnonzero(encoded[row] == UNK).tolist()
            if not places:
                found.append({})
                continue
            surfaces = self.surfaces(text)
            found.append({place: self._word(surfaces[place]) for place in places})
        return found

    def _word(self, surface: Surface) -> str:
        """A word of a text in the form of a token."""
        word = surface.text.lower() if self._lowercases else surface.text
        return self._as_token(word) if surface.starts_word else word

    def _first_ones(self, unknown: list[dict[int, str]]) -> Words:
        """The different unknown words of each text in their order, as many as are numbered."""
        return [list(dict.fromkeys(found.values()))[: self.numbered] for found in unknown]

    def count_unknown(self, ids: Ids) -> int:
        """How many ids are `<unk>`, or those of numbered unknown words."""
        given = np.asarray(ids)
        is_numbered = (given > EOS) & (given <= EOS + self.numbered)
        return int(np.count_nonzero((given == UNK) | is_numbered))

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """The [start, end) characters of each text that each of its tokens came from.

        Of characters that normalisation put together, the first stands for all.
        """
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.offsets for encoding in encodings]

    def decode(
        self,
        ids: Ids,
        unknown: Sequence[Surface] | None = None,
        numbered: Sequence[str] = (),
    ) -> str:
        """The text; `<pad>`, `<bos>` and `<eos>` are left out.

        Characters that the tokenizer takes apart (NFD) are put together again, as texts are
        written: jamo to syllables.

        Args:
            unknown: what each unknown token reads, in their order; None reads `<unk>` each time.
            numbered: what `<unk:1>`, `<unk:2>`, ... read, of the source, as `numbered_words` gives
                them; one that the source does not have reads `<unk>`.
        """
        words = itertools.repeat(UNKNOWN_SURFACE) if unknown is None else iter(unknown)
        tokens = []
        for i in map(int, ids):
            if i in (PAD, BOS, EOS):
                continue
            if EOS < i <= EOS + self.numbered:
                number = i - EOS - 1
                is_there = number < len(numbered)
                tokens.append(numbered[number] if is_there else self._as_token(SPECIAL_TOKENS[UNK]))
            elif i == UNK:
                tokens.append(self._surface_token(next(words)))
            else:
                tokens.append(self._token(i))

        text = " ".join(tokens) if self._decoder is None else self._decoder.decode(tokens)
        return unicodedata.normalize("NFC", text) if self._takes_apart else text

    def surfaces(self, text: str) -> list[Surface]:
        """What each token stands for in the text, without surrounding white space.

        A token reaches to where the next one starts: its offsets miss what normalisation put
        together.
        """
        (offsets,) = self.offsets([text])
        starts = [start for start, _ in offsets] + [len(text)]
        surfaces = []
        for (start, end), next_start in zip(offsets, starts[1:], strict=True):
            span = text[start : max(end, next_start)]
            starts_word = start == 0 or span[:1].isspace() or text[start - 1].isspace()
            # A token may be white space itself.
            surfaces.append(Surface(span.strip() or span, starts_word))
        return surfaces

    def _surface_token(self, surface: Surface) -> str:
        """What stands for an unknown token, in the form of a token."""
        token = self._as_token(surface.text)
        return token if surface.starts_word else token.removeprefix(WORD_START)

    def _as_token(self, word: str) -> str:
        """A word in the form of a token, as the decoder takes it."""
        if not self._marked:
            return word
        return WORD_START + word.replace(WORD_START, "_")

    def tokens(self, ids: Ids) -> list[str]:
        """A readable name for each id: `<eos>`, `␣` for white space, words without their mark."""
        mark = WORD_START if self._marked else ""
        tokens = [self._token(int(i)).removeprefix(mark) for i in ids]
        return [token if token.strip() else "␣" for token in tokens]

    def id_of(self, token: str | int) -> int:
        """The id of a token in the form that `tokens` shows.

        A token at the start of a word takes precedence over a part of a word. Ids are returned as
        they are.

        Raises ValueError for a token that the vocabulary lacks, and for `<pad>` and `<bos>`, which
        no model writes.
        """
        candidates = self._ids_of_name(token) if isinstance(token, str) else [token]
        in_vocabulary = [i for i in candidates if i is not None and 0 <= i < self.size]
        if not in_vocabulary or in_vocabulary[0] in (PAD, BOS):
            raise ValueError(
                f"{token!r} is no token that the model can write; it has {self.size}, from ids 0 on"
            )
        return in_vocabulary[0]

    def _ids_of_name(self, name: str) -> list[int | None]:
        """The ids that a name may mean, None for one that there is not."""
        written = " " if name == "␣" else name
        spellings = [WORD_START + written, written] if self._marked else [written]
        return [self._backend.token_to_id(spelling) for spelling in spellings]

    def _token(self, i: int) -> str:
        """The token with this id, its mark included.

        Raises ValueError for an id that is not in the vocabulary.
        """
        if i not in self._names:
            token = self._backend.id_to_token(i)
            if token is None:
                raise ValueError(f"the id must be between 0 and {self.size - 1}, got {i}")
            self._names[i] = token
        return self._names[i]

    def as_json(self) -> dict[str, Any]:
        """The library's own description of the tokeniser, vocabulary included."""
        described: dict[str, Any] = json.loads(self._backend.to_str())
        return described

    def save(self, path: Path) -> None:
        path.write_text(self._backend.to_str(pretty=True) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        try:
            return cls(tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8")))
        except Exception as error:  # the library raises plain Exception
            raise ExperimentError(
                f"the tokeniser {path} cannot be read ({error}); run the stage again that wrote "
                "its folder"
            ) from error


class TokenizerTrainer(ABC):
    """Learns a `Tokenizer` from text. `joint` asks for one vocabulary over both languages."""

    joint: bool = False

    @property
    def files(self) -> list[Path]:
        """What it reads beside the texts; prepared data are made anew where these change."""
        return []

    @abstractmethod
    def train(self, texts: Iterable[str]) -> Tokenizer:
        """texts: of the training split alone. The same texts give the same bytes."""

    def train_sides(self, *sides: Iterator[str]) -> list[Tokenizer]:
        """A tokeniser for each side: the same one for all where `joint`."""
        if self.joint:
            return [self.train(itertools.chain(*sides))] * len(sides)
        return [self.train(side) for side in sides]
