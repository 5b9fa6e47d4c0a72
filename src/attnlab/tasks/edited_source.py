"""A text as a model reads it, after an edit of its tokens: what the explorer shows and changes.

Axes: S source tokens, with `<eos>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from attnlab.batch import PAD, Batch, Padding
from attnlab.data.padding import make_batch
from attnlab.data.tokenizer import Surface, Tokenizer
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.memory import Memory
from attnlab.tasks.cleaning import cleaned
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.requests import check_sources

DECIMALS = 6

T = TypeVar("T")


@dataclass(frozen=True)
class Edit:
    """A change of the source, by positions of its tokens, `<eos>` not among them.

    swap: pairs that change places, one pair after the other.
    drop: positions that are left out; they count as before the drops.
    before, behind: pads to add.
    """

    swap: Sequence[tuple[int, int]] = ()
    drop: Sequence[int] = ()
    before: int = 0
    behind: int = 0

    def check(self, length: int) -> None:
        """Raise ExperimentError where it names a position that a source of this length lacks."""
        places = [*self.drop]
        for pair in self.swap:
            places += pair
        if any(not 0 <= place < length for place in places):
            raise ExperimentError(f"edit: swap and drop must name positions below {length}")
        if self.before < 0 or self.behind < 0:
            raise ExperimentError(
                f"edit: before and behind must be at least 0, got {self.before} and {self.behind}"
            )

    def apply(self, tokens: Sequence[T]) -> list[T]:
        """The tokens of a source, or what stands for each of them, after the swaps and drops."""
        swapped = list(tokens)
        for one, other in self.swap:
            swapped[one], swapped[other] = swapped[other], swapped[one]
        return [token for position, token in enumerate(swapped) if position not in self.drop]


NO_EDIT = Edit()


@dataclass(frozen=True)
class Source:
    """One text as a batch of one, after an edit.

    ids: of its tokens, without `<eos>` and pads.
    words: its numbered unknown words.
    surfaces: what each token stands for in the text, as `ids`.
    before, behind: pads that are added.
    device: of the model.
    """

    tokenizer: Tokenizer
    padding: Padding
    ids: list[int]
    words: Sequence[str]
    surfaces: list[Surface]
    before: int
    behind: int
    device: torch.device

    @classmethod
    def read(cls, model: Predictor, text: str, edit: Edit, intervene: Intervention) -> Source:
        """The text as the model reads it, cleaned as its training data were.

        Positions count the tokens of the cleaned text. The sentence of a patch must have been read
        (`Patch.read`).

        Raises ExperimentError for an intervention or an edit that does not fit the text, and for
        what is not a text.
        """
        model.check_intervention(intervene)
        tokenizer = model.source_tokenizer
        texts = cleaned([text], model.cleaning)
        (ids,) = tokenizer.encode_ids(texts)
        (words,) = tokenizer.numbered_words(texts)
        edit.check(len(ids))
        source = cls(
            tokenizer=tokenizer,
            padding=model.padding,
            ids=edit.apply(ids),
            words=words,
            surfaces=edit.apply(tokenizer.surfaces(texts[0])),
            before=edit.before,
            behind=edit.behind,
            device=next(model.model.parameters()).device,
        )
        check_sources(intervene, source.batch([]))
        return source

    def batch(self, target: Sequence[int]) -> Batch:
        """A batch of one: the source with its pads, and a target, given without its `<eos>`."""
        batch = make_batch([self.ids], [list(target)], self.padding)
        pads_before = batch.source.new_full((1, self.before), PAD)
        pads_behind = batch.source.new_full((1, self.behind), PAD)
        padded = torch.cat([pads_before, batch.source, pads_behind], dim=1)
        edited = replace(batch, source=padded, source_mask=padded != PAD)
        return edited.to(self.device)

    @property
    def tokens(self) -> list[str]:
        """The S tokens as text, pads among them."""
        return self.tokenizer.tokens(self.batch([]).source[0].tolist())


def first_known_text(model: Predictor, texts: Sequence[str]) -> str:
    """The first text of which at most half of the tokens are `<unk>`; "" for none."""
    ids_of_texts = model.source_tokenizer.encode_ids(cleaned(texts, model.cleaning))
    for text, ids in zip(texts, ids_of_texts, strict=True):
        if 2 * model.source_tokenizer.count_unknown(ids) <= len(ids):
            return text
    return ""


def score_name(attention: Any) -> str:
    """The class of the first head's score, without its ending: `Bahdanau`."""
    score = score_of(heads_of(attention)[0])
    return type(score).__name__.removesuffix("Score")


def score_of(head: Any) -> Any:
    """The score of a head, without the projection that may surround it."""
    return getattr(head.score, "score", head.score)


def heads_of(attention: Any) -> list[Any]:
    """The heads of an attention; an attention without several heads is its own single head."""
    return list(getattr(attention, "attentions", [attention]))


def rounded(numbers: Tensor) -> Any:
    """Nested lists of numbers with as many decimals as a page needs."""
    return torch.round(numbers.double(), decimals=DECIMALS).tolist()


def score_positions(memory: Memory) -> Tensor:
    """The positions (B, S) that a score by position is given, as the model gives them.

    A pad that the mask hides may stand beyond the longest source; its position is never looked at.
    """
    if memory.mask is None:
        return memory.positions
    is_hidden_pad = ~memory.mask & (memory.positions >= memory.lengths[:, None])
    return memory.positions.masked_fill(is_hidden_pad, 0)
