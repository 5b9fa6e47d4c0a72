"""The formulas of an attention: projections, energies, mask, weights and context, head by head.

Axes: S source tokens, T steps before this one, Q query, D values, A keys, P projection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.model.attention.attention import Attention, MultiHeadAttention
from attnlab.model.attention.delta_rule import DeltaRuleScore
from attnlab.model.attention.intervention import Intervention
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.mechanism import LinearProjection
from attnlab.model.attention.memory import Memory
from attnlab.model.fast.attention import FastAttention
from attnlab.model.gates import ElementwiseGate, PerHeadGate
from attnlab.model.histories.history import Remembered
from attnlab.model.histories.mocha import Mocha
from attnlab.model.normalisers.around_best import AroundBest
from attnlab.model.normalisers.entmax import Entmax
from attnlab.model.normalisers.hard import Hard
from attnlab.model.normalisers.learned_temperature import LearnedTemperature
from attnlab.model.normalisers.none import NoneNormaliser
from attnlab.model.normalisers.reinforce import Reinforce
from attnlab.model.normalisers.sigmoid import Sigmoid
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.normalisers.softmax_with_sink import SoftmaxWithSink
from attnlab.model.normalisers.sparsemax import Sparsemax
from attnlab.model.normalisers.top_k import TopK
from attnlab.model.scopes import GlobalScope, LocalM, LocalP
from attnlab.tasks.edited_source import heads_of, score_positions
from attnlab.tasks.symbols.histories import (
    Weighing,
    compare_in_chunks,
    makes_weights,
    remember,
    weigh_by_history,
    with_history,
)
from attnlab.tasks.symbols.operations import Array
from attnlab.tasks.symbols.scores import ENERGIES, KEYS, written_keys
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol

Masking = Literal["before", "after"]
"""Where the mask stands: minus infinity before the softmax, or zero after it."""


@dataclass(frozen=True)
class Look:
    """One look of a model back at its source, as the model itself took it.

    memory: of one sentence.
    position: of the step in the target.
    past: what each head remembered before each step up to this one; None without a history.
    weights: of each head (S,).
    context: (D,), of the attention.
    tokens: S, with the pads.
    """

    memory: Memory
    position: int
    weights: Sequence[Tensor]
    context: Tensor
    tokens: Sequence[str]
    past: Sequence[Sequence[Remembered]] | None = None

    def memory_of(self, head: int) -> Memory:
        """What one head looks at, with the intervention that is on it."""
        assert self.memory.keys is not None
        return self.memory.head(head) if self.memory.keys.dim() == 4 else self.memory

    def asked_by(self, query: Tensor, history: Any, head: int) -> Look:
        """The look whose head has what `History.before` makes of its past and the query (Q,)."""
        if self.past is None:
            return self
        *earlier, last = self.past[head]
        pasts = list(self.past)
        pasts[head] = [*earlier, history.before(last, query.to(last.weights)[None])]
        return replace(self, past=pasts)


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


def gated(
    sheet: Sheet,
    gate: Any,
    query: Symbol,
    context: Symbol,
    names: tuple[str, str],
    heads: int = 1,
) -> Symbol:
    """The context behind a gate.

    names: of the result, and what it is about.
    """
    if type(gate) not in (ElementwiseGate, PerHeadGate):
        found = run(gate, query.values[None, None], context.values[None, None])[0, 0]
        behind = sheet.opaque(*names, found, *context.axes, of=[query, context], part=part_of(gate))
        sheet.formula("{} = gate({}, {})", behind, query, context)
        return behind

    weight, bias = gate.W.weight, gate.W.bias
    axis = context.axes[0]
    if type(gate) is PerHeadGate and heads == 1:
        axis = Axis("N", 1)
    elif type(gate) is PerHeadGate:  # its number, for each entry of a head's context
        each = axis.size // heads
        weight, bias = weight.repeat_interleave(each, 0), bias.repeat_interleave(each)
    W = sheet.weight("W_g", "gate_W", weight, axis, query.axes[0])
    b = sheet.weight("b_g", "bias", bias, axis)
    asked = sheet.compute("u_g", "gate_sum", "linear", W, query, b)
    openness = sheet.compute("γ_t", "gate", "sigmoid", asked)
    behind = sheet.compute(*names, "multiply", context, openness)
    sheet.formula("{} = {} {} + {}", asked, W, query, b)
    sheet.formula("{} = sigmoid({})", openness, asked)
    sheet.formula("{} = {} ∘ {}", behind, openness, context)
    return behind


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


def see(
    sheet: Sheet, scope: Any, query: Symbol, memory: Memory, position: int
) -> tuple[Symbol | None, Symbol | None]:
    """What may be seen (S,), 1 or 0, and the factors of a local scope (S,); None for none."""
    tokens = sheet.symbols["h"].axes[0]
    visible = None
    if memory.mask is not None:
        visible = sheet.given("m", "mask", memory.mask[0], tokens)
    if type(scope) is GlobalScope:
        return visible, None

    if type(scope) not in (LocalM, LocalP):
        dtype = next(scope.parameters(), torch.empty(0)).dtype
        device = memory.positions.device
        window = scope(
            torch.as_tensor(query.values, dtype=dtype, device=device)[None, None],
            torch.tensor([[position]], device=device),
            memory.positions,
            memory.lengths,
        )
        emphasis = None
        if window.inside is not None:
            inside = sheet.opaque(
                "inside", "window", window.inside[0, 0], tokens, of=[query], part=part_of(scope)
            )
            visible = joined_mask(sheet, visible, inside)
        if window.emphasis is not None:
            emphasis = sheet.opaque(
                "g_t", "emphasis", window.emphasis[0, 0], tokens, of=[query], part=part_of(scope)
            )
        return visible, emphasis

    places = sheet.given("pos", "positions", memory.positions[0], tokens)
    length = int(memory.lengths[0])
    if isinstance(scope, LocalM):
        centre = sheet.given("p_c", "centre", np.asarray(min(position, length - 1)))
        inside = sheet.compute("inside", "window", "window", places, centre, width=scope.width)
        sheet.formula("{} = |{} − {}| ≤ " + str(scope.width), inside, places, centre)
        return joined_mask(sheet, visible, inside), None

    hidden = Axis("Q", len(query.values))
    W = sheet.weight("W_p", "scope_W", scope.W.weight, hidden, query.axes[0])
    v = sheet.weight("v_p", "scope_v", scope.v, hidden)
    mapped = sheet.compute("u", "scope_mapped", "linear", W, query)
    bent = sheet.compute("tanh u", "scope_tanh", "tanh", mapped)
    product = sheet.compute("v·tanh u", "scope_product", "dot", v, bent)
    share = sheet.compute("σ", "scope_share", "sigmoid", product)
    centre = sheet.compute("p_c", "centre", "centre", share, length=length)
    inside = sheet.compute("inside", "window", "window", places, centre, width=scope.width)
    emphasis = sheet.compute("g_t", "emphasis", "gaussian", places, centre, sigma=scope.width / 2)
    sheet.formula("{} = {} {}", mapped, W, query)
    sheet.formula("{} = tanh({})", bent, mapped)
    sheet.formula("{} = {} · {}", product, v, bent)
    sheet.formula("{} = sigmoid({})", share, product)
    sheet.formula("{} = min(" + f"{length} " + "{}, " + f"{length - 1})", centre, share)
    sheet.formula("{} = |{} − {}| ≤ " + str(scope.width), inside, places, centre)
    sheet.formula("{} = exp(−({} − {})² / 2σ²)", emphasis, places, centre)
    return joined_mask(sheet, visible, inside), emphasis


def joined_mask(sheet: Sheet, mask: Symbol | None, inside: Symbol) -> Symbol:
    if mask is None:
        return inside
    both = sheet.compute("m′", "mask_and_window", "multiply", mask, inside)
    sheet.formula("{} = {} ∘ {}", both, mask, inside)
    return both


def weigh(
    sheet: Sheet,
    attention: Any,
    e: Symbol,
    visible: Symbol | None,
    emphasis: Symbol | None,
    look: Look,
    number: int,
    masking: Masking,
) -> Symbol:
    """The weights: the normaliser, with the mask before or after it, and the scope's factors."""
    scores = e
    if visible is not None and masking == "before":
        scores = sheet.compute("e′", "masked_energy", "mask", e, visible)
        sheet.formula("{} = {};  {} = 0 ⇒ −∞", scores, e, visible)
    intervention = look.memory_of(number).intervention
    if is_changed(intervention, scores):
        alpha = sheet.opaque(
            "α",
            "weights",
            look.weights[number],
            e.axes[0],
            of=[scores],
            part=None,
            operation="change",
        )
        sheet.formula("{} = change({})", alpha, scores)
        return alpha

    stages = ["normalise"]
    if visible is not None and masking == "after":
        stages.append("hide")
    if emphasis is not None:
        stages.append("favour")
        if getattr(attention.scope, "renormalise", False):
            stages.append("share out")
    # The last of them makes α; those before have names of their own.
    names = ["a", "a′", "a″"][: len(stages) - 1]
    abouts = ["weights_before_change"] * len(names)
    names.append("α")
    abouts.append("weights")

    alpha = scores
    for stage, name, about in zip(stages, names, abouts, strict=True):
        if stage == "normalise":
            alpha = weights_of(sheet, attention, scores, look, number, name, about)
        elif stage == "hide":
            assert visible is not None
            alpha = product_of(sheet, name, about, alpha, visible)
        elif stage == "favour":
            assert emphasis is not None
            alpha = product_of(sheet, name, about, alpha, emphasis)
        else:
            alpha = shared_out(sheet, name, about, alpha)
    return alpha


def weights_of(
    sheet: Sheet, attention: Any, scores: Symbol, look: Look, number: int, name: str, about: str
) -> Symbol:
    """The weights that the normaliser makes, or the history of it."""
    past = None if look.past is None else look.past[number][-1]
    if past is None or not makes_weights(attention.history):
        return normalise(sheet, attention.normaliser, scores, name, about)

    def normalised(its_name: str, its_about: str) -> Symbol:
        return normalise(sheet, attention.normaliser, scores, its_name, its_about)

    weighing = Weighing(scores, normalised, attention.normaliser, past, name, about)
    return weigh_by_history(sheet, attention.history, weighing)


def product_of(sheet: Sheet, name: str, about: str, weights: Symbol, factors: Symbol) -> Symbol:
    found = sheet.compute(name, about, "multiply", weights, factors)
    sheet.formula("{} = {} ∘ {}", found, weights, factors)
    return found


def shared_out(sheet: Sheet, name: str, about: str, weights: Symbol) -> Symbol:
    """The weights divided by their sum."""
    whole = sheet.compute("Σa", "sum_of_weights", "total", weights)
    found = sheet.compute(name, about, "divide", weights, whole)
    sheet.formula("{} = Σ {}", whole, weights)
    sheet.formula("{} = {} / {}", found, weights, whole)
    return found


def is_changed(intervention: Intervention | None, scores: Symbol) -> bool:
    """Whether an intervention puts other weights in the place of the normaliser's."""
    if not np.isfinite(scores.values).any():
        return True
    if intervention is None:
        return False
    return (
        intervention.kind is not None or bool(intervention.weights) or intervention.temperature != 1
    )


@dataclass(frozen=True)
class Written:
    """How a normaliser is written as a formula.

    operation: on the scores, and on the number that it learns.
    formula: the weights, the scores, and the number that it learns.
    learned: that number's attribute, its name and what it is; None where there is none.
    settings: of the operation, by the attributes that hold them.
    """

    operation: str
    formula: str
    learned: tuple[str, str, str] | None = None
    settings: tuple[str, ...] = ()


NORMALISERS: Mapping[type, Written] = {
    Softmax: Written("softmax", "{} = softmax({})"),
    Sparsemax: Written("sparsemax", "{} = sparsemax({})"),
    Entmax: Written("entmax", "{} = entmax({})", settings=("alpha",)),
    Sigmoid: Written(
        "sigmoid_weights", "{} = σ({} + {} − log n)", ("b", "b_α", "normaliser_offset")
    ),
    SoftmaxWithSink: Written(
        "softmax_with_sink", "{} = exp({}) / (exp({}) + Σ exp)", ("b", "b_α", "normaliser_sink")
    ),
    LearnedTemperature: Written(
        "tempered_softmax", "{} = softmax({} / exp({}))", ("a", "log_τ", "normaliser_temperature")
    ),
    TopK: Written("top_k", "{} = top-k({})", settings=("k",)),
    AroundBest: Written("around_best", "{} = softmax around max {}", settings=("reach",)),
    NoneNormaliser: Written("seen_alone", "{} = {}"),
    Hard: Written("greatest", "{} = one-hot(argmax {})"),
    Reinforce: Written("greatest", "{} = one-hot(argmax {})"),
}


def normalise(sheet: Sheet, normaliser: Any, scores: Symbol, name: str, about: str) -> Symbol:
    written = NORMALISERS.get(type(normaliser))
    if written is None:
        found = run(normaliser, scores.values[None, None])[0, 0]
        alpha = sheet.opaque(
            name, about, found, *scores.axes, of=[scores], part=part_of(normaliser)
        )
        sheet.formula("{} = weights({})", alpha, scores)
        return alpha

    of = [scores]
    if written.learned is not None:
        attribute, its_name, its_about = written.learned
        of.append(sheet.weight(its_name, its_about, getattr(normaliser, attribute)))
    settings: dict[str, Any] = {
        key: plain_number(getattr(normaliser, key)) for key in written.settings
    }
    alpha = sheet.compute(name, about, written.operation, *of, **settings)
    sheet.formula(written.formula, alpha, *of)
    return alpha


def plain_number(setting: float | Tensor) -> float:
    return setting.item() if isinstance(setting, Tensor) else setting


def run(module: Callable[..., Tensor], *arrays: Array) -> Tensor:
    """What a module from outside computes of arrays, in the type and the place of its weights."""
    like = torch.empty(0)
    if isinstance(module, nn.Module):
        like = next(module.parameters(), like)
    return module(*(torch.as_tensor(array).to(like) for array in arrays))


def part_of(module: Any) -> str:
    return type(module).__name__
