"""The numbers inside the attention of each step: query, keys, energies, mask, weights, context.

Axes: T target tokens, S source tokens, H query, P its projection, A keys, D values and context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.tasks.requests import NO_CHANGE
from attnlab.tasks.translation.analysis import (
    NO_EDIT,
    Edit,
    Source,
    heads_of,
    known_ids,
    read_target,
    rounded,
    score_of,
)
from attnlab.tasks.translation.translator import Translator

HeadCall = tuple[tuple[Any, ...], tuple[Tensor, Tensor]]
"""The arguments of a head, and the context (B, T, D) and weights (B, 1, T, S) that it returned."""


@torch.no_grad()
def step_numbers(
    translator: Translator,
    text: str,
    target: Sequence[int],
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """The numbers that each step of a given target computes.

    Returns:
        as `score`, and of each head: query (T, H), keys (S, A) as the score reads them, values (S,
        D), energies (T, S) before the mask, visible (T, S), weights (T, S), context (T, D). Where
        the model has them also projected_query (T, P), emphasis (T, S) of a local-p scope, coverage
        (T, S) with coverage_weight (A,), and g of the score.

    Raises ExperimentError for a model without attention, and as `score`.
    """
    source = Source.read(translator, text, edit, intervene)
    if translator.model.decoder.attention is None:
        raise ExperimentError("the model has no attention whose numbers could be shown")

    # Listen to the heads during the model's own pass, so that the numbers are those it used.
    heads = heads_of(translator.model.decoder.attention)
    calls: dict[nn.Module, list[HeadCall]] = {head: [] for head in heads}

    def record(head: nn.Module, arguments: tuple[Any, ...], found: tuple[Tensor, Tensor]) -> None:
        calls[head].append((arguments, found))

    hooks = [head.register_forward_hook(record) for head in heads]
    try:
        answer = read_target(translator, source, known_ids(translator, target), intervene)
    finally:
        for hook in hooks:
            hook.remove()
    return {**answer, "heads": [head_numbers(head, calls[head], len(target)) for head in heads]}


def head_numbers(attention: Any, calls: Sequence[HeadCall], length: int) -> dict[str, Any]:
    """The numbers of one head over a target of this length."""
    # A decoder calls a head once for all steps, or once a step.
    numbers_of_calls = [_call_numbers(attention, *call) for call in calls]
    numbers = {}
    for name in numbers_of_calls[0]:
        numbers[name] = torch.cat([own[name] for own in numbers_of_calls])[:length]
    visible = numbers.pop("visible").tolist()

    # The memory is the same in every call.
    (_, memory, *_), _ = calls[0]
    keys = memory.keys[0]
    if memory.keys.dim() == 2:
        keys = keys.unsqueeze(1)  # a location is one number, not a vector
    numbers["keys"] = keys
    numbers["values"] = memory.values[0]
    if attention.coverage is not None:
        numbers["coverage_weight"] = attention.coverage.w.weight[:, 0]
    g = getattr(score_of(attention), "g", None)
    if g is not None:
        numbers["g"] = g

    answer = {name: rounded(value) for name, value in numbers.items()}
    answer["visible"] = visible
    return answer


def _call_numbers(
    attention: Any, arguments: tuple[Any, ...], found: tuple[Tensor, Tensor]
) -> dict[str, Tensor]:
    """The numbers of the steps of one call, (T, ...) each; without what the head does not have."""
    query, memory, positions, *rest = arguments
    coverage = rest[0] if rest else None
    context, weights = found
    keys = memory.keys
    if attention.coverage is not None and coverage is not None:
        keys = attention.coverage(keys, coverage[:, 0])

    window = attention.scope(query, positions, memory.positions, memory.lengths)
    energies = attention.score(query, keys)  # (B, T, S)
    visible = torch.ones_like(energies, dtype=torch.bool)
    if memory.mask is not None:
        visible = visible & memory.mask.unsqueeze(1)
    if window.inside is not None:
        visible = visible & window.inside

    numbers = {
        "query": query,
        "energies": energies,
        "visible": visible,
        "weights": weights[:, 0],
        "context": context,
        "emphasis": window.emphasis,
        "coverage": coverage,
    }
    if attention.score is not score_of(attention):
        numbers["projected_query"] = attention.score.P(query)
    # The batch holds one sentence.
    return {name: value[0] for name, value in numbers.items() if value is not None}
