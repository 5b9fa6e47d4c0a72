"""Analyses of a translation model for the explorer's page, as dicts that JSON can hold.

Axes: T target tokens and S source tokens, both with `<eos>`; V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.batch import EOS
from attnlab.data.tokenizer import Tokenizer
from attnlab.errors import ExperimentError
from attnlab.evaluation.edit_alignment import (
    links_of_hypothesis,
    places_in_reference,
    wrong_tokens,
)
from attnlab.model.attention.intervention import Intervention
from attnlab.model.bridges import ZeroBridge
from attnlab.search.search import Hypothesis, Search, next_log_probs
from attnlab.tasks.cleaning import cleaned
from attnlab.tasks.edited_source import (
    NO_EDIT,
    Edit,
    Source,
    rounded,
    score_name,
)
from attnlab.tasks.requests import NO_CHANGE, compares_keys
from attnlab.tasks.translation.hypotheses import HypothesisText
from attnlab.tasks.translation.posterior import with_posteriors
from attnlab.tasks.translation.translator import Translator

TOP_TOKENS = 5  # likeliest tokens that are shown of a step


def parts_of(translator: Translator) -> dict[str, Any]:
    """What the page says of a model.

    Returns:
        score, None for one without attention; masks_pads, whether it was trained with a mask;
        heads, the number of those that can be changed alone; and patches, what can be taken from
        another sentence: weights, keys, values and state, or some of them.
    """
    attention = translator.model.decoder.attention
    return {
        "score": None if attention is None else score_name(attention),
        "masks_pads": translator.padding.attention_masked,
        "heads": 0 if attention is None else attention.heads,
        "patches": patchable_parts(translator),
    }


def patchable_parts(translator: Translator) -> list[str]:
    """What this model can take from its run on another sentence."""
    parts = []
    attention = translator.model.decoder.attention
    if attention is not None:
        # A posterior over alignments is no map of weights.
        if not translator.model.output.has_posterior:
            parts.append("weights")
        parts.append("values")
        if compares_keys(attention):
            parts.append("keys")
    if not isinstance(translator.model.bridge, ZeroBridge):
        parts.append("state")
    return parts


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

    Returns:
        source (S tokens), target (T tokens), ids (T), log_probs (T), likeliest (T lists of [token,
        id, probability]), attention (T, S; None for a model without), text and score.

    Raises ExperimentError for whatever does not fit the model or the text.
    """
    model = translator.intervened(intervene)
    intervene = model.intervention  # whose patch is read
    source = Source.read(translator, text, edit, intervene)
    search = translator.search(settings or {})
    batch = source.batch([])
    (hypotheses,) = search(
        model,
        batch.source,
        batch.source_mask,
        with_attention=search.replace_unknown,
        forced=translator.forced(intervene),
    )
    (hypotheses,) = with_posteriors(
        translator.model, batch.source, batch.source_mask, [hypotheses], intervene
    )
    best = hypotheses[0]
    target = [*best.tokens, EOS] if best.finished else best.tokens
    answer = read_target(translator, source, target, intervene)
    text = text_of(translator, search, best, source)
    return answer | {"text": text, "score": best.score}


def text_of(translator: Translator, search: Search, hypothesis: Hypothesis, source: Source) -> str:
    """The text of what a search wrote, with words of the source where it copies them."""
    to_text = HypothesisText(
        translator.source_tokenizer, translator.target_tokenizer, search.replace_unknown
    )
    ids = source.batch([]).source[0]
    return to_text.of_words(hypothesis, ids, source.surfaces, source.words)


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

    Returns what `translate` returns, but for the score. Raises ExperimentError for whatever does
    not fit the model or the text.
    """
    intervene = translator.intervened(intervene).intervention  # whose patch is read
    source = Source.read(translator, text, edit, intervene)
    if isinstance(target, str):
        texts = cleaned([target], translator.cleaning)
        (tokens,) = translator.target_tokenizer.encode_ids(texts, [source.words])
        ids = [*tokens, EOS]
    else:
        ids = known_ids(translator, target)
    answer = read_target(translator, source, ids, intervene)
    return answer | {"text": translator.target_tokenizer.decode(ids, numbered=source.words)}


def marks(
    translator: Translator,
    ids: Sequence[int],
    reference: Sequence[int],
    sure: Sequence[tuple[int, int]] = (),
    possible: Sequence[tuple[int, int]] = (),
) -> dict[str, Any]:
    """What a heat map marks of a translation: known links, and tokens unlike the reference.

    Args:
        ids: of the translation's tokens.
        reference: ids of the reference's tokens.
        sure, possible: links [position, source position] of the reference.

    Returns:
        sure and possible, links of the translation, each in one of them; wrong, positions of the
        tokens that differ from the reference at their place.
    """
    places = places_in_reference(ids, reference)
    only_possible = [link for link in possible if link not in sure]
    return {
        "sure": links_of_hypothesis(as_links(sure), places).tolist(),
        "possible": links_of_hypothesis(as_links(only_possible), places).tolist(),
        "wrong": wrong_tokens(ids, reference),
    }


def as_links(links: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(links, dtype=np.int64).reshape(-1, 2)


def read_target(
    translator: Translator, source: Source, target: Sequence[int], intervene: Intervention
) -> dict[str, Any]:
    """What `translate` returns, but for text and score, of a source and a given target.

    The target has `<eos>` unless the length limit cut it off.
    """
    batch = source.batch([token for token in target if token != EOS])
    if EOS not in target:
        is_written = batch.target_output != EOS
        batch = replace(batch, target_mask=batch.target_mask & is_written)
    unrolled = translator.model(batch, intervention=intervene)
    logits = translator.model.output(unrolled.reading[0, : len(target)])
    log_probs = next_log_probs(logits)  # (T, V)
    target_ids = torch.tensor([target], dtype=torch.long, device=log_probs.device)
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


def known_ids(translator: Translator, target: Sequence[int]) -> list[int]:
    """The ids of a target, checked to be in the vocabulary.

    Raises ExperimentError for an unknown id, and for an `<eos>` before the end.
    """
    try:
        ids = [translator.target_tokenizer.id_of(token) for token in target]
    except ValueError as error:
        raise ExperimentError(f"target: {error}") from None
    if EOS in ids[:-1]:
        raise ExperimentError("target: <eos> must stand at its end alone")
    return ids
