"""Analyses of a model for the explorer's page, as dicts that JSON can hold.

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
from attnlab.model.attention.intervention import Intervention
from attnlab.model.decoder.decoder import Decoder
from attnlab.search.search import next_log_probs
from attnlab.tasks.classification.classifier import (
    SentenceClassifier,
    check_classifier_intervention,
)
from attnlab.tasks.cleaning import cleaned
from attnlab.tasks.requests import NO_CHANGE, check_sources
from attnlab.tasks.translation.translator import Translator

TOP_TOKENS = 5  # likeliest tokens that are shown of a step
DECIMALS = 6

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

    def apply(self, ids: Sequence[int]) -> list[int]:
        """The ids of a source after the swaps and drops."""
        swapped = list(ids)
        for one, other in self.swap:
            swapped[one], swapped[other] = swapped[other], swapped[one]
        return [token for position, token in enumerate(swapped) if position not in self.drop]


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
        """The text as the model reads it, cleaned as its training data were.

        Positions count the tokens of the cleaned text.

        Raises ExperimentError for an intervention that does not fit the text, and for what is not a
        text.
        """
        if isinstance(model, Translator):
            model.intervened(intervene)
        else:
            check_classifier_intervention(intervene)
        tokenizer = source_tokenizer(model)
        (ids,) = tokenizer.encode_ids(cleaned([text], model.cleaning))
        source = cls(tokenizer, model.padding, edit.apply(ids), edit.before, edit.behind)
        check_sources(intervene, source.batch([]))
        return source

    def batch(self, target: Sequence[int]) -> Batch:
        """The source with its pads beside a target, which has no `<eos>`."""
        batch = make_batch([self.ids], [list(target)], self.padding)
        pads_before = batch.source.new_full((1, self.before), PAD)
        pads_behind = batch.source.new_full((1, self.behind), PAD)
        padded = torch.cat([pads_before, batch.source, pads_behind], dim=1)
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
    """The kind of a model, the parts whose formulas the page shows, and an example to start with.

    The example is the first text, of `examples` and then ours, that is not mostly `<unk>` to the
    model; "" for none.
    """
    kind = "translation" if isinstance(model, Translator) else "classification"
    facts = {"kind": kind, "example": _first_known_text(model, [*examples, EXAMPLES[kind]])}
    if isinstance(model, SentenceClassifier):
        return facts | {"score": score_name(model.model.attention), "labels": model.labels}
    return facts | _describe_decoder(model.model.decoder)


def _first_known_text(model: Translator | SentenceClassifier, texts: Sequence[str]) -> str:
    """The first text of which at most half of the tokens are `<unk>`; "" for none."""
    ids_of_texts = source_tokenizer(model).encode_ids(cleaned(texts, model.cleaning))
    for text, ids in zip(texts, ids_of_texts, strict=True):
        if 2 * ids.count(UNK) <= len(ids):
            return text
    return ""


def _describe_decoder(decoder: Decoder) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "decoder": type(decoder).__name__,
        "readout": type(decoder.body.readout).__name__,
        "fed": type(decoder.body.input_feeding).__name__,
        "context_in_cell": decoder.into_cell,
        "context_in_readout": decoder.into_readout,
    }
    if decoder.attention is None:
        return facts | {"score": None}

    # All heads have the same parts.
    head = heads_of(decoder.attention)[0]
    score = score_of(head)
    facts["normaliser"] = type(head.normaliser).__name__
    facts["scope"] = type(head.scope).__name__
    facts["score"] = score_name(decoder.attention)
    facts["projected"] = head.score is not score
    facts["biased"] = getattr(getattr(score, "W", None), "bias", None) is not None
    facts["coverage"] = head.coverage is not None
    facts["multi_head"] = head is not decoder.attention
    facts["renormalise"] = getattr(head.scope, "renormalise", False)
    return facts


def score_name(attention: Any) -> str:
    """The class of the score, that of the first head."""
    score = score_of(heads_of(attention)[0])
    return type(score).__name__.removesuffix("Score")


def score_of(head: Any) -> Any:
    """The score of a head, under a projection where there is one."""
    return getattr(head.score, "score", head.score)


def heads_of(attention: Any) -> list[Any]:
    """The heads of an attention, which is its own single head where it has no others."""
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
    (hypotheses,) = search(
        model,
        batch.source,
        batch.source_mask,
        with_attention=search.replace_unknown,
        forced=translator.forced(intervene),
    )
    best = hypotheses[0]
    target = [*best.tokens, EOS] if best.finished else best.tokens
    answer = read_target(translator, source, target, intervene)
    return answer | {"text": translator.target_tokenizer.decode(best.tokens), "score": best.score}


@torch.no_grad()
def score(
    translator: Translator,
    text: str,
    target: str | Sequence[int],
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """How likely each token of a given target is after the tokens before it.

    target: a text, or the ids of its tokens, the last one `<eos>` or not.
    """
    source = Source.read(translator, text, edit, intervene)
    if isinstance(target, str):
        (tokens,) = translator.target_tokenizer.encode_ids(cleaned([target], translator.cleaning))
        ids = [*tokens, EOS]
    else:
        ids = known_ids(translator, target)
    answer = read_target(translator, source, ids, intervene)
    return answer | {"text": translator.target_tokenizer.decode(ids)}


def read_target(
    translator: Translator, source: Source, target: Sequence[int], intervene: Intervention
) -> dict[str, Any]:
    """Tokens, log-probabilities, likeliest tokens and attention of a source and a given target.

    The target has `<eos>` unless the length limit cut it off.
    """
    batch = source.batch([token for token in target if token != EOS])
    unrolled = translator.model(batch, intervention=intervene)
    logits = translator.model.output(unrolled.readout[0, : len(target)])
    log_probs = next_log_probs(logits)  # (T, V)
    target_ids = torch.tensor([target], dtype=torch.long)
    own_log_probs = log_probs.gather(1, target_ids.T).squeeze(1)  # (T,)

    attention = None
    if unrolled.attention_weights is not None:
        attention = rounded(unrolled.attention_weights[0, : len(target)])
    return {
        "source": source.tokens,
        "target": translator.target_tokenizer.tokens(target),
        "ids": list(target),
        "log_probs": rounded(own_log_probs),
        "likeliest": _likeliest_tokens(log_probs, translator.target_tokenizer),
        "attention": attention,
    }


def _likeliest_tokens(log_probs: Tensor, tokenizer: Tokenizer) -> list[list[list[Any]]]:
    """[token, id, probability] of the likeliest tokens of each step, from log_probs (T, V)."""
    # `<pad>` and `<bos>` can never be written, so a small vocabulary has that many fewer.
    count = min(TOP_TOKENS, log_probs.shape[1] - 2)
    top = log_probs.exp().topk(count, dim=1)
    steps = []
    for ids, probabilities in zip(top.indices.tolist(), rounded(top.values), strict=True):
        rows = zip(tokenizer.tokens(ids), ids, probabilities, strict=True)
        steps.append([list(row) for row in rows])
    return steps


@torch.no_grad()
def classify(
    classifier: SentenceClassifier,
    text: str,
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """The probability of each class and the weight of each token, pads among them.

    Errors as for `translate`.
    """
    source = Source.read(classifier, text, edit, intervene)
    batch = source.batch([])
    found = classifier.model(batch.source, batch.source_mask, intervene)
    class_probabilities = found.log_probabilities[0].exp().tolist()
    probabilities = dict(zip(classifier.labels, class_probabilities, strict=True))
    return {
        "source": source.tokens,
        "label": max(classifier.labels, key=lambda label: probabilities[label]),
        "probabilities": probabilities,
        "attention": rounded(found.attention_weights[0]),
    }


def rounded(numbers: Tensor) -> Any:
    """Nested lists of numbers with as many decimals as a page needs."""
    return torch.round(numbers.double(), decimals=DECIMALS).tolist()


def known_ids(translator: Translator, target: Sequence[int]) -> list[int]:
    """The ids as they are; raises ExperimentError for an unknown id."""
    try:
        return [translator.target_tokenizer.id_of(token) for token in target]
    except ValueError as error:
        raise ExperimentError(f"target: {error}") from None
