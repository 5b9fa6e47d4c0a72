"""The formulas of an attention: projections, energies, weights and context, head by head.

Axes: S source tokens, D values, A keys, P projection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.delta_rule import DeltaRuleScore
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.mechanism import LinearProjection
from attnlab.model.fast.attention import FastAttention
from attnlab.model.histories.mocha import Mocha
from attnlab.tasks.edited_source import heads_of, score_positions
from attnlab.tasks.symbols.gates import gated
from attnlab.tasks.symbols.histories import (
    compare_in_chunks,
    remember,
    with_history,
)
from attnlab.tasks.symbols.look import Look, Masking
from attnlab.tasks.symbols.outside import part_of, run
from attnlab.tasks.symbols.scopes import see
from attnlab.tasks.symbols.scores import ENERGIES, KEYS, written_keys
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol
from attnlab.tasks.symbols.weights import weigh


def encoder_vectors(sheet: Sheet, outputs: Tensor, tokens: Sequence[str]) -> Symbol:
    """h: a vector (D,) for each of the S tokens."""
    tokens_axis = Axis("S", len(tokens), tokens)
    return sheet.given("h", "encoder_vectors", outputs, tokens_axis, Axis("D", outputs.shape[-1]))


def attend(
    sheet: Sheet,
    attention: Any,
    query: Symbol,
    outputs: Tensor,
    look: Look,
    masking: Masking = "before",
) -> Symbol:
    """The symbols of an attention, for a query of the sheet; returns the context's.

    outputs: the encoder's (S, D).
    """
    h = encoder_vectors(sheet, outputs, look.tokens)
    if type(attention) in (Attention, FastAttention):
        _, context = attend_with_head(sheet, attention, 0, query, h, h, look, masking)
        return context
    if type(attention) is MultiHeadAttention:
        return attend_with_heads(sheet, attention, query, h, look, masking)
    # An attention from outside: what it returned is known, but not how.
    alpha = sheet.opaque(
        "α", "weights", look.weights[0], h.axes[0], of=[query, h], part=part_of(attention)
    )
    width = Axis("D", look.context.shape[-1])
    context = sheet.opaque(
        "c_t", "context", look.context, width, of=[alpha, h], part=part_of(attention)
    )
    sheet.formula("{}, {} = attention({}, {})", alpha, context, query, h)
    return context


def attend_with_heads(
    sheet: Sheet,
    attention: MultiHeadAttention,
    query: Symbol,
    h: Symbol,
    look: Look,
    masking: Masking,
) -> Symbol:
    """concat(head_1, ..., head_N) W_O."""
    contexts = []
    size = attention.W_Q.weight.shape[0] // attention.heads
    for number, head in enumerate(heads_of(attention)):
        sheet.head = number
        sheet.begin("head", same_number=True)
        part = slice(number * size, (number + 1) * size)
        own: dict[str, Symbol] = {}
        for name, layer, of in (
            ("Q", attention.W_Q, query),
            ("K", attention.W_K, h),
            ("V", attention.W_V, h),
        ):
            W = sheet.weight(
                f"W_{name}", f"head_W_{name}", layer.weight[part], Axis("P", size), of.axes[-1]
            )
            # Small letters are vectors, great ones matrices; v is a weight of some scores.
            called = "q" if name == "Q" else name
            own[name] = sheet.compute(called, f"head_{name}", "linear", W, of)
            sheet.formula("{} = {} {}", own[name], W, of)
        _, context = attend_with_head(
            sheet, head, number, own["Q"], own["K"], own["V"], look, masking
        )
        contexts.append(context)

    sheet.head = None
    sheet.begin("join_heads", same_number=True)
    joined_axis = Axis("N·P", sum(context.axes[0].size for context in contexts))
    joined = sheet.compute("c_0…N−1", "joined_heads", "concat", *contexts, axes=[joined_axis])
    sheet.formula("{} = [" + "; ".join(["{}"] * len(contexts)) + "]", joined, *contexts)
    if attention.gate is not None:
        names = ("c′_0…N−1", "joined_heads")
        joined = gated(sheet, attention.gate, query, joined, names, attention.heads)
    W_O = sheet.weight("W_O", "head_W_O", attention.W_O.weight, h.axes[1], joined_axis)
    context = sheet.compute("c_t", "context", "linear", W_O, joined)
    sheet.formula("{} = {} {}", context, W_O, joined)
    return context


def attend_with_head(
    sheet: Sheet,
    attention: Any,
    number: int,
    query: Symbol,
    keys: Symbol,
    values: Symbol,
    look: Look,
    masking: Masking,
) -> tuple[Symbol, Symbol]:
    """The symbols of one head; returns those of its weights and its context.

    number: of the head, from 0 on.
    """
    own = look.memory_of(number)

    # 1. What is compared: projections, what the score makes of the keys, and what was seen.
    asking = query
    look = look.asked_by(torch.as_tensor(query.values), attention.history, number)
    score = attention.score
    if score.by_position:
        positions = score_positions(own)
        if masking == "after":
            # The softmax takes the pads in: where they have no energy, this refuses them.
            positions = own.positions
            if type(score) is LocationScore:
                score.project_keys(positions)
        keys = sheet.given("i", "positions", np.array(positions[0].tolist()), values.axes[0])
    if type(score) is LinearProjection:
        query, keys = project(sheet, score, query, keys)
        score = score.score
    known = type(score) in ENERGIES
    if type(score) is DeltaRuleScore:
        # A pad that the mask hid when the source was written has the key 0.
        written = (own.keys[0] != 0).any(-1)  # type: ignore[index]
        keys = written_keys(sheet, score, keys, written.tolist())
    elif known:
        keys = KEYS[type(score)](sheet, score, keys)
    else:
        projected = own.keys[0]  # type: ignore[index]
        axes = [values.axes[0], *(Axis("A", size) for size in projected.shape[1:])]
        keys = sheet.opaque("k", "projected_keys", projected, *axes, of=[keys], part=part_of(score))
        sheet.formula("{} = keys({})", keys, keys.of[0])
    past = None if look.past is None else look.past[number]
    if past is not None:
        keys = with_history(sheet, attention.history, keys, past)

    # 2. The energies.
    if known:
        e = ENERGIES[type(score)](sheet, score, query, keys)
    else:
        found = run(score, query.values[None, None], keys.values[None])[0, 0]
        e = sheet.opaque(
            "e", "energy", found, values.axes[0], of=[query, keys], part=part_of(score)
        )
        sheet.formula("{} = score({}, {})", e, query, keys)
    if past is not None and type(attention.history) is Mocha:
        compare_in_chunks(sheet, attention.history, asking, values)

    # 3. The mask, the weights and the context.
    visible, emphasis = see(sheet, attention.scope, asking, own, look.position)
    alpha = weigh(sheet, attention, e, visible, emphasis, look, number, masking)
    sum_of_weights = sheet.compute("Σα", "sum_of_weights", "total", alpha)
    sheet.formula("{} = Σ {}", sum_of_weights, alpha)
    gate = attention.gate
    name = "c" if sheet.head is not None else "c_t"
    raw = (name, "context") if gate is None else ("c′_t", "context_before_gate")
    context = sheet.compute(*raw, "weighted_sum", alpha, values)
    sheet.formula("{} = Σ {} {}", context, alpha, values)
    if gate is not None:
        context = gated(sheet, gate, asking, context, (name, "context"))
    if past is not None:
        remember(sheet, attention.history, asking, alpha, context)
    return alpha, context


def project(
    sheet: Sheet, projection: LinearProjection, query: Symbol, keys: Symbol
) -> tuple[Symbol, Symbol]:
    """q′ = W_q s and k′ = W_k h."""
    width = Axis("P", projection.P.weight.shape[0])
    W_q = sheet.weight("W_q", "projection_W_q", projection.P.weight, width, query.axes[0])
    W_k = sheet.weight("W_k", "projection_W_k", projection.R.weight, width, keys.axes[1])
    projected_query = sheet.compute("q′", "projected_query", "linear", W_q, query)
    projected_keys = sheet.compute("k′", "projected_keys", "linear", W_k, keys)
    sheet.formula("{} = {} {}", projected_query, W_q, query)
    sheet.formula("{} = {} {}", projected_keys, W_k, keys)
    return projected_query, projected_keys
