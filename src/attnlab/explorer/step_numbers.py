"""The numbers inside the attention of each step: query, keys, energies, mask, weights, context.

Axes: T target tokens, S source tokens, H query, P its projection, A keys, D values and context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import ExperimentError
from attnlab.explorer.analysis import (
    NO_EDIT,
    Edit,
    Source,
    heads_of,
    known_ids,
    reading,
    rounded,
    score_of,
)
from attnlab.inference.requests import NO_CHANGE
from attnlab.inference.translator import Translator
from attnlab.model.attention.intervention import Intervention


@torch.no_grad()
def step_numbers(
    translator: Translator,
    text: str,
    target: Sequence[int],
    intervene: Intervention = NO_CHANGE,
    edit: Edit = NO_EDIT,
) -> dict[str, Any]:
    """What each step of a target computes, the tokens before it fed.

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
    heads = heads_of(translator.model.decoder.attention)
    calls: dict[nn.Module, list[tuple[tuple[Any, ...], tuple[Tensor, Tensor]]]] = {
        head: [] for head in heads
    }
    hooks = [
        head.register_forward_hook(lambda head, given, found: calls[head].append((given, found)))
        for head in heads
    ]
    try:
        answer = reading(translator, source, known_ids(translator, target), intervene)
    finally:
        for hook in hooks:
            hook.remove()
    return {**answer, "heads": [numbers(head, calls[head], len(target)) for head in heads]}


def numbers(
    attention: Any, calls: Sequence[tuple[tuple[Any, ...], tuple[Tensor, Tensor]]], length: int
) -> dict[str, Any]:
    """The numbers of one head, from each call of it and what the call returned."""
    rows: dict[str, list[Tensor]] = {}
    score = score_of(attention)
    for given, (context, weights) in calls:
        query, memory, t, coverage = (*given, None)[:4]
        keys = memory.keys
        if attention.coverage is not None:
            keys = attention.coverage(keys, coverage[:, 0])
        window = attention.scope(query, t, memory.positions, memory.lengths)
        energies = attention.score(query, keys)
        visible = torch.ones_like(energies, dtype=torch.bool)
        for mask in (None if memory.mask is None else memory.mask.unsqueeze(1), window.inside):
            visible = visible if mask is None else visible & mask
        found = {
            "query": query,
            "energies": energies,
            "visible": visible,
            "weights": weights[:, 0],
            "context": context,
        }
        found |= {"emphasis": window.emphasis, "coverage": coverage}
        if attention.score is not score:
            found["projected_query"] = attention.score.P(query)
        for name, value in found.items():
            if value is not None:
                rows.setdefault(name, []).append(value[0])
    joined = {name: torch.cat(values)[:length] for name, values in rows.items()}
    memory = calls[0][0][1]
    # A location has no vector
    keys = memory.keys[0] if memory.keys.dim() == 3 else memory.keys[0].unsqueeze(1)
    seen = joined.pop("visible").tolist()
    joined |= {"keys": keys, "values": memory.values[0]}
    if attention.coverage is not None:
        joined["coverage_weight"] = attention.coverage.w.weight[:, 0]
    if (g := getattr(score, "g", None)) is not None:
        joined["g"] = g
    return {**{name: rounded(value) for name, value in joined.items()}, "visible": seen}
