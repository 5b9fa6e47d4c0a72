"""What the explorer shows, computed from a model as dicts that JSON can hold.

Axes: T target tokens and S source tokens, both with `<eos>`; V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attnlab.batch import EOS, PAD, UNK, Batch, Padding
from attnlab.data.padding import make_batch
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.inference.classifier import SentenceClassifier, check_one_look
from attnlab.inference.cleaning import cleaned
from attnlab.inference.requests import NO_CHANGE, check_sources
from attnlab.inference.translator import Translator
from attnlab.model.attention.intervention import Intervention
from attnlab.search.search import next_log_probs

LIKELIEST = 5  # tokens that are shown of a step
EXAMPLES = {
    "translation": "Wednesday, January 13, 2010",
    "classification": "A film that is a joy to watch.",
}


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

    def of(self, ids: Sequence[int]) -> list[int]:
        """The ids of a source after the swaps and drops."""
        changed = list(ids)
        for one, other in self.swap:
            changed[one], changed[other] = changed[other], changed[one]
        return [token for position, token in enumerate(changed) if position not in self.drop]


NO_EDIT = Edit()


@dataclass(frozen=True)
class Source:
    """One text as a batch of one, after an edit."""

    tokenizer: Tokenizer
    padding: Padding
    ids: list[int]  # without <eos> and pads
    before: int
    behind: int

    @classmethod
    def read(
        cls, model: Translator | SentenceClassifier, text: str, edit: Edit, intervene: Intervention
    ) -> Source:
        """The text as the model reads it, cleaned as its training data were; positions count the
        tokens of that text.

        Raises ExperimentError for an intervention that does not fit the text, and for what is no
        text.
        """
        if isinstance(model, Translator):
            model.intervened(intervene)
        else:
            check_one_look(intervene)
        tokenizer = source_tokenizer(model)
        (ids,) = tokenizer.encode_ids(cleaned([text], model.cleaning))
        source = cls(tokenizer, model.padding, edit.of(ids), edit.before, edit.behind)
        check_sources(intervene, source.batch([]))
        return source

    def batch(self, target: Sequence[int]) -> Batch:
        """The source with its pads beside a target, which has no `<eos>`."""
        batch = make_batch([self.ids], [list(target)], self.padding)
        pads = [batch.source.new_full((1, count), PAD) for count in (self.before, self.behind)]
        padded = torch.cat([pads[0], batch.source, pads[1]], dim=1)
        return replace(batch, source=padded, source_mask=padded != PAD)

    @property
    def tokens(self) -> list[str]:
        """S, pads among them."""
        return self.tokenizer.tokens(self.batch([]).source[0].tolist())


def source_tokenizer(model: Translator | SentenceClassifier) -> Tokenizer:
    return model.source_tokenizer if isinstance(model, Translator) else model.tokenizer


def describe(
    model: Translator | SentenceClassifier, examples: Sequence[str] = ()
) -> dict[str, Any]:
    """What a model is: its kind, the parts whose formulas the page shows, and an example to begin
    with.

    The example is the first text, of `examples` and then ours, that is not mostly `<unk>` to the
    model; "" for none.
    """
    kind = "translation" if isinstance(model, Translator) else "classification"
    texts = [*examples, EXAMPLES[kind]]
    ids = source_tokenizer(model).encode_ids(cleaned(texts, model.cleaning))
    known = (text for text, row in zip(texts, ids, strict=True) if 2 * row.count(UNK) <= len(row))
    facts: dict[str, Any] = {"kind": kind, "example": next(known, "")}
    if isinstance(model, SentenceClassifier):
        return facts | {"score": score_name(model.model.attention), "labels": model.labels}
    decoder = model.model.decoder
    facts |= {
        "decoder": type(decoder).__name__,
        "readout": type(decoder.body.readout).__name__,
        "fed": type(decoder.body.input_feeding).__name__,
        "context_in_cell": decoder.into_cell,
        "context_in_readout": decoder.into_readout,
    }
    if decoder.attention is None:
        return facts | {"score": None}
    head = heads_of(decoder.attention)[0]
    parts = {"normaliser": head.normaliser, "scope": head.scope}
    facts |= {name: type(part).__name__ for name, part in parts.items()}
    return facts | {
        "score": score_name(decoder.attention),
        "projected": head.score is not score_of(head),
        "biased": getattr(getattr(score_of(head), "W", None), "bias", None) is not None,
        "coverage": head.coverage is not None,
        "multi_head": head is not decoder.attention,
        "renormalise": getattr(head.scope, "renormalise", False),
    }


def score_name(attention: Any) -> str:
    """The class of the score, that of the first head."""
    return type(score_of(heads_of(attention)[0])).__name__.removesuffix("Score")


def score_of(head: Any) -> Any:
    """The score of a head, under a projection where there is one."""
    return getattr(head.score, "score", head.score)


def heads_of(attention: Any) -> list[Any]:
    return list(getattr(attention, "attentions", [attention]))


@torch.no_grad()
def translate(
    translator: Translator,
    text: str,
    intervene: Intervention = NO_CHANGE,
    settings: Mapping[str, Any] | None = None,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """The best translation, with the likeliest tokens of each of its steps and the attention.

    Args:
        settings: of the search, as a `Translator` takes them.

    Raises ExperimentError for whatever does not fit the model or the text.
    """
    source = Source.read(translator, text, edit, intervene)
    search = translator.search(settings or {})
    batch = source.batch([])
    model = translator.intervened(intervene)
    ((best, *_),) = search(
        model, batch.source, batch.source_mask, search.replace_unknown, translator.forced(intervene)
    )
    answer = reading(translator, source, [*best.tokens, *[EOS] * best.finished], intervene)
    return answer | {"text": translator.target_tokenizer.decode(best.tokens), "score": best.score}


@torch.no_grad()
def score(
    translator: Translator,
    text: str,
    target: str | Sequence[int],
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """How likely each token of a given target is, the tokens before it fed.

    target: a text, or the ids of its tokens, the last one `<eos>` or not.
    """
    source = Source.read(translator, text, edit, intervene)
    if isinstance(target, str):
        (tokens,) = translator.target_tokenizer.encode_ids(cleaned([target], translator.cleaning))
        ids = [*tokens, EOS]
    else:
        ids = known_ids(translator, target)
    return reading(translator, source, ids, intervene) | {
        "text": translator.target_tokenizer.decode(ids)
    }


def reading(
    translator: Translator, source: Source, target: Sequence[int], intervene: Intervention
) -> dict[str, Any]:
    """What a page shows of a source and a target that the decoder is fed, `<eos>` included where it
    came.
    """
    unrolled = translator.model(
        source.batch([token for token in target if token != EOS]), intervention=intervene
    )
    # (T, V)
    log_probs = next_log_probs(translator.model.output(unrolled.readout[0, : len(target)]))
    own = log_probs.gather(1, torch.tensor([target], dtype=torch.long).T).squeeze(1)
    # Never <pad>, never <bos>
    top = log_probs.exp().topk(min(LIKELIEST, log_probs.shape[1] - 2), dim=1)
    names = translator.target_tokenizer.tokens
    likeliest = [
        [[token, i, p] for token, i, p in zip(names(ids), ids, probabilities, strict=True)]
        for ids, probabilities in zip(top.indices.tolist(), rounded(top.values), strict=True)
    ]
    weights = (
        None if unrolled.attention_weights is None else unrolled.attention_weights[0, : len(target)]
    )
    return {
        "source": source.tokens,
        "target": names(target),
        "ids": list(target),
        "log_probs": rounded(own),
        "likeliest": likeliest,
        "attention": None if weights is None else rounded(weights),
    }


@torch.no_grad()
def classify(
    classifier: SentenceClassifier,
    text: str,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """The probability of each class and the weight of each token, pads among them; errors as for
    `translate`.
    """
    source = Source.read(classifier, text, edit, intervene)
    batch = source.batch([])
    found = classifier.model(batch.source, batch.source_mask, intervene)
    probabilities = dict(
        zip(classifier.labels, found.log_probabilities[0].exp().tolist(), strict=True)
    )
    return {
        "source": source.tokens,
        "label": max(classifier.labels, key=probabilities.__getitem__),
        "probabilities": probabilities,
        "attention": rounded(found.attention_weights[0]),
    }


def rounded(numbers: Tensor) -> Any:
    """Nested lists of so many digits that the error is below 1e-6."""
    return torch.round(numbers.double(), decimals=6).tolist()


def known_ids(translator: Translator, target: Sequence[int]) -> list[int]:
    """The ids as they are; raises ExperimentError for one that is no token."""
    try:
        return [translator.target_tokenizer.id_of(token) for token in target]
    except ValueError as error:
        raise ExperimentError(f"target: {error}") from None
