"""The formulas of the scores: what each makes of the keys once a sentence, and of query and keys.

Axes: Q query, D keys, A projected keys, S source tokens, M longest source of a location.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.concat import ConcatScore
from attnlab.model.attention.cosine import CosineScore
from attnlab.model.attention.delta_rule import DeltaRuleScore
from attnlab.model.attention.dot import DotScore
from attnlab.model.attention.general import GeneralScore
from attnlab.model.attention.linear_attention import LinearAttentionScore
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.normed_bahdanau import NormedBahdanauScore
from attnlab.model.attention.scaled_dot import ScaledDotScore
from attnlab.model.attention.scaled_luong import ScaledLuongScore
from attnlab.model.attention.uniform import UniformScore
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol


def base(symbol: Symbol) -> str:
    """The first letter of a symbol's name, with its prime: `s` of s_t−1."""
    return str(symbol.name[0])


# What a score makes of the keys alone. The keys are an axis of tokens, so each is (S, ...).


def plain_keys(sheet: Sheet, score: Any, keys: Symbol) -> Symbol:
    return keys


def mapped_keys(sheet: Sheet, score: Any, keys: Symbol) -> Symbol:
    """W h of `general` and `scaled_luong`."""
    width = Axis("A", score.W.weight.shape[0])
    W = sheet.weight("W", "score_W_keys", score.W.weight, width, keys.axes[1])
    Wh = sheet.compute(f"W {base(keys)}", "mapped_keys", "linear", W, keys)
    sheet.formula("{} = {} {}", Wh, W, keys)
    return Wh


def right_half(sheet: Sheet, score: Any, keys: Symbol) -> Symbol:
    """W₂ h of `concat`: the part of W [s; h] that every key meets."""
    width, joined = score.W.weight.shape
    W = sheet.weight("W", "score_W_joined", score.W.weight, Axis("A", width), Axis("Q+D", joined))
    W2 = sheet.compute(
        "W_2",
        "score_W_right",
        "columns",
        W,
        axes=(W.axes[0], keys.axes[1]),
        start=score.query_size,
        stop=joined,
    )
    Wh = sheet.compute(f"W₂ {base(keys)}", "mapped_keys", "linear", W2, keys)
    sheet.formula("{} = {}[:, " + f"{score.query_size}:{joined}]", W2, W)
    sheet.formula("{} = {} {}", Wh, W2, keys)
    return Wh


def additive_keys(sheet: Sheet, score: Any, keys: Symbol) -> Symbol:
    """U h + b of the additive scores, U h of linear attention."""
    width = Axis("A", score.U.weight.shape[0])
    U = sheet.weight("U", "score_U", score.U.weight, width, keys.axes[1])
    if score.U.bias is None:
        Uh = sheet.compute(f"U {base(keys)}", "mapped_keys", "linear", U, keys)
        sheet.formula("{} = {} {}", Uh, U, keys)
        return Uh
    b = sheet.weight("b_U", "bias", score.U.bias, width)
    Uh = sheet.compute(f"U {base(keys)}", "mapped_keys", "linear", U, keys, b)
    sheet.formula("{} = {} {} + {}", Uh, U, keys, b)
    return Uh


def written_keys(sheet: Sheet, score: Any, keys: Symbol, written: Sequence[bool]) -> Symbol:
    """The keys of the delta rule, whose products with W s are the weights.

    written: which tokens write; pads do not.
    """
    width = Axis("A", score.U.weight.shape[0])
    U = sheet.weight("U", "score_U", score.U.weight, width, keys.axes[1])
    w = sheet.weight("w", "strength_w", score.w.weight[0], keys.axes[1])
    Uh = sheet.compute(f"U {base(keys)}", "mapped_keys", "linear", U, keys)
    unit_keys = sheet.compute("k", "unit", "unit", Uh)
    found = sheet.compute(
        "k̃", "projected_keys", "delta_rule", unit_keys, keys, w, axes=Uh.axes, written=written
    )
    sheet.formula("{} = {} {}", Uh, U, keys)
    sheet.formula("{} = {} / |{}|", unit_keys, Uh, Uh)
    written_as = "{} = (I + diag(β) triu({} {}ᵀ, 1))⁻¹ diag(β) {},  β = σ({} {})"
    sheet.formula(written_as, found, unit_keys, unit_keys, unit_keys, keys, w)
    return found


# The energy of each key. `keys` are those from above, perhaps with a coverage added.


def dot(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    e = sheet.compute("e", "energy", "dot", query, keys)
    sheet.formula("{} = {} · {}", e, query, keys)
    return e


def scaled_dot(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    product = sheet.compute(f"{base(query)}·{base(keys)}", "product", "dot", query, keys)
    root = sheet.given("√d", "root", np.asarray(math.sqrt(query.axes[0].size)), batched=False)
    e = sheet.compute("e", "energy", "divide", product, root)
    sheet.formula("{} = {} · {}", product, query, keys)
    sheet.formula("{} = {} / {}", e, product, root)
    return e


def scaled_luong(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    product = sheet.compute(f"{base(query)}·{base(keys)}", "product", "dot", query, keys)
    g = sheet.weight("g", "scale", score.g)
    e = sheet.compute("e", "energy", "multiply", product, g)
    sheet.formula("{} = {} · {}", product, query, keys)
    sheet.formula("{} = {} {}", e, g, product)
    return e


def cosine(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    unit_query = sheet.compute(f"{base(query)}/|{base(query)}|", "unit", "unit", query)
    unit_keys = sheet.compute(f"{base(keys)}/|{base(keys)}|", "unit", "unit", keys)
    cos = sheet.compute("cos", "cosine", "dot", unit_query, unit_keys)
    g = sheet.weight("g", "scale", score.g)
    e = sheet.compute("e", "energy", "multiply", cos, g)
    sheet.formula("{} = {} / |{}|", unit_query, query, query)
    sheet.formula("{} = {} / |{}|", unit_keys, keys, keys)
    sheet.formula("{} = {} · {}", cos, unit_query, unit_keys)
    sheet.formula("{} = {} {}", e, g, cos)
    return e


def additive(sheet: Sheet, mapped_query: Symbol, keys: Symbol, v: Symbol) -> Symbol:
    """v · tanh(W s + U h) from W s, U h and v."""
    name = f"{base(mapped_query)}+{base(keys)}"
    both = sheet.compute(name, "sum_of_both", "add", mapped_query, keys)
    T = sheet.compute("T", "tanh_matrix", "tanh", both)
    e = sheet.compute("e", "energy", "dot", v, T)
    sheet.formula("{} = {} + {}", both, mapped_query, keys)
    sheet.formula("{} = tanh({})", T, both)
    sheet.formula("{} = {} · {}", e, v, T)
    return e


def bahdanau(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    width = keys.axes[1]
    W = sheet.weight("W", "score_W_query", score.W.weight, width, query.axes[0])
    if score.W.bias is None:
        Ws = sheet.compute(f"W {base(query)}", "mapped_query", "linear", W, query)
        sheet.formula("{} = {} {}", Ws, W, query)
    else:
        b = sheet.weight("b_W", "bias", score.W.bias, width)
        Ws = sheet.compute(f"W {base(query)}", "mapped_query", "linear", W, query, b)
        sheet.formula("{} = {} {} + {}", Ws, W, query, b)
    v = sheet.weight("v", "score_v", score.v, width)
    return additive(sheet, Ws, keys, v)


def normed_bahdanau(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    width = keys.axes[1]
    W = sheet.weight("W", "score_W_query", score.W.weight, width, query.axes[0])
    Ws = sheet.compute(f"W {base(query)}", "mapped_query", "linear", W, query)
    v = sheet.weight("v", "score_v", score.v, width)
    unit_v = sheet.compute("v/|v|", "unit", "unit", v)
    g = sheet.weight("g", "scale", score.g)
    gv = sheet.compute("g v/|v|", "scaled_v", "multiply", unit_v, g)
    sheet.formula("{} = {} {}", Ws, W, query)
    sheet.formula("{} = {} / |{}|", unit_v, v, v)
    sheet.formula("{} = {} {}", gv, g, unit_v)
    return additive(sheet, Ws, keys, gv)


def concat(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    # The keys have met the right half of W already.
    W = sheet.symbols[sheet.named("W")]
    W1 = sheet.compute(
        "W_1",
        "score_W_left",
        "columns",
        W,
        axes=(W.axes[0], query.axes[0]),
        start=0,
        stop=score.query_size,
    )
    Ws = sheet.compute(f"W₁ {base(query)}", "mapped_query", "linear", W1, query)
    v = sheet.weight("v", "score_v", score.v, keys.axes[1])
    sheet.formula("{} = {}[:, " + f"0:{score.query_size}]", W1, W)
    sheet.formula("{} = {} {}", Ws, W1, query)
    return additive(sheet, Ws, keys, v)


def delta_rule(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    W = sheet.weight("W", "score_W_query", score.W.weight, keys.axes[1], query.axes[0])
    Ws = sheet.compute(f"W {base(query)}", "mapped_query", "linear", W, query)
    sheet.formula("{} = {} {}", Ws, W, query)
    return dot(sheet, score, Ws, keys)


def linear_attention(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    W = sheet.weight("W", "score_W_query", score.W.weight, keys.axes[1], query.axes[0])
    Ws = sheet.compute(f"W {base(query)}", "mapped_query", "linear", W, query)
    e = sheet.compute("e", "energy", "log_kernel", Ws, keys, axes=keys.axes[:1])
    sheet.formula("{} = {} {}", Ws, W, query)
    sheet.formula("{} = log φ({}) · φ({}), φ(x) = elu(x) + 1", e, Ws, keys)
    return e


def location(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    positions = [int(place) for place in keys.values]
    W = sheet.weight(
        "W", "score_W_location", score.W.weight, Axis("M", score.max_length), query.axes[0]
    )
    Ws = sheet.compute(f"W {base(query)}", "by_position", "linear", W, query)
    e = sheet.compute("e", "energy", "gather", Ws, axes=keys.axes, index=positions)
    sheet.formula("{} = {} {}", Ws, W, query)
    sheet.formula("{} = {}[{}]", e, Ws, keys)
    return e


def uniform(sheet: Sheet, score: Any, query: Symbol, keys: Symbol) -> Symbol:
    e = sheet.given("e", "energy", np.zeros(len(keys.values)), *keys.axes)
    sheet.formula("{} = 0", e)
    return e


KEYS: Mapping[type, Callable[[Sheet, Any, Symbol], Symbol]] = {
    DotScore: plain_keys,
    ScaledDotScore: plain_keys,
    GeneralScore: mapped_keys,
    ScaledLuongScore: mapped_keys,
    CosineScore: plain_keys,
    ConcatScore: right_half,
    BahdanauScore: additive_keys,
    LinearAttentionScore: additive_keys,
    NormedBahdanauScore: additive_keys,
    LocationScore: plain_keys,
    UniformScore: plain_keys,
}
ENERGIES: Mapping[type, Callable[[Sheet, Any, Symbol, Symbol], Symbol]] = {
    DotScore: dot,
    ScaledDotScore: scaled_dot,
    GeneralScore: dot,
    ScaledLuongScore: scaled_luong,
    CosineScore: cosine,
    ConcatScore: concat,
    BahdanauScore: bahdanau,
    DeltaRuleScore: delta_rule,
    LinearAttentionScore: linear_attention,
    NormedBahdanauScore: normed_bahdanau,
    LocationScore: location,
    UniformScore: uniform,
}
