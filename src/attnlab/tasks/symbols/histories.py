"""The formulas of histories: what an attention remembers, and what it makes of it.

Axes: S source tokens, T steps before this one, A projected keys, K filters, D values, Q query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from attnlab.model.histories.coverage import Coverage
from attnlab.model.histories.forward import LEAST, Forward, ForwardWithAgent, Moving
from attnlab.model.histories.history import History, Remembered
from attnlab.model.histories.last_weights import LastWeights
from attnlab.model.histories.location_sensitive import LocationSensitive
from attnlab.model.histories.mocha import Mocha
from attnlab.model.histories.monotonic import Monotonic, ReadingOn
from attnlab.tasks.symbols.scores import base
from attnlab.tasks.symbols.sheet import Axis, Sheet, Symbol, as_array


@dataclass(frozen=True)
class Weighing:
    """What weights are made of in a step, and how they are called.

    normalised: makes the symbol of the normaliser's weights, of its name and what it is.
    normalise: the normaliser itself, on scores (B, S).
    past: what this head remembers.
    """

    scores: Symbol
    normalised: Callable[[str, str], Symbol]
    normalise: Callable[[torch.Tensor], torch.Tensor]
    past: Any
    name: str
    about: str


def weights_before(sheet: Sheet, past: Remembered, tokens: Axis) -> Symbol:
    """α_t−1: (S,), as it stands in the record."""
    return sheet.given("α_t−1", "last_weights", past.weights[0], tokens)


# What is added to the keys.


def cover(sheet: Sheet, history: Coverage, keys: Symbol, past: Sequence[Remembered]) -> Symbol:
    """The keys with w κ added, κ being the sum of the weights of all steps before."""
    tokens = keys.axes[0]
    # What a step adds to the coverage are its weights.
    sums = torch.stack([step.weights[0] for step in past])
    steps = Axis("T", len(past) - 1)
    before = sheet.given("α_1…t−1", "weights_before", sums.diff(dim=0), steps, tokens)
    kappa = sheet.compute("κ_t", "coverage", "sum_of_rows", before)
    w = sheet.weight("w", "coverage_w", history.w.weight[:, 0], keys.axes[1])
    seen = sheet.compute("w κ", "covered", "outer", kappa, w)
    covered = sheet.compute(f"{base(keys)}+w κ", "covered_keys", "add", keys, seen)
    sheet.formula("{} = Σ {}", kappa, before)
    sheet.formula("{} = {} {}", seen, w, kappa)
    sheet.formula("{} = {} + {}", covered, keys, seen)
    return covered


def add_last_weights(
    sheet: Sheet, history: LastWeights, keys: Symbol, past: Sequence[Remembered]
) -> Symbol:
    """The keys with w α_t−1 added."""
    before = weights_before(sheet, past[-1], keys.axes[0])
    w = sheet.weight("w", "history_w", history.w.weight[:, 0], keys.axes[1])
    seen = sheet.compute("w α", "remembered", "outer", before, w)
    changed = sheet.compute(f"{base(keys)}+w α", "keys_with_history", "add", keys, seen)
    sheet.formula("{} = {} {}", seen, w, before)
    sheet.formula("{} = {} + {}", changed, keys, seen)
    return changed


def add_locations(
    sheet: Sheet, history: LocationSensitive, keys: Symbol, past: Sequence[Remembered]
) -> Symbol:
    """The keys with U φ added, φ = F * α_t−1."""
    before = weights_before(sheet, past[-1], keys.axes[0])
    width = history.filter_width
    neighbours = Axis("r", width)
    around = sheet.compute(
        "α_±", "weights_around", "around", before, axes=[keys.axes[0], neighbours], width=width
    )
    F = sheet.weight("F", "history_F", history.F, Axis("K", len(history.F)), neighbours)
    f = sheet.compute("φ_t", "locations", "linear", F, around)
    U = sheet.weight("U_φ", "history_U", history.U.weight, keys.axes[1], F.axes[0])
    seen = sheet.compute("U φ", "remembered", "linear", U, f)
    changed = sheet.compute(f"{base(keys)}+U φ", "keys_with_history", "add", keys, seen)
    sheet.formula(f"{{}} = {{}}(i−{width // 2} … i+{width // 2})", around, before)
    sheet.formula("{} = {} {}", f, F, around)
    sheet.formula("{} = {} {}", seen, U, f)
    sheet.formula("{} = {} + {}", changed, keys, seen)
    return changed


KEYS: Mapping[type, Callable[..., Symbol]] = {
    Coverage: cover,
    LastWeights: add_last_weights,
    LocationSensitive: add_locations,
}


def with_history(sheet: Sheet, history: Any, keys: Symbol, past: Sequence[Remembered]) -> Symbol:
    """The keys as the score of this step reads them.

    past: what this head remembered before each step up to this one.
    """
    if type(history) in KEYS:
        return KEYS[type(history)](sheet, history, keys, past)
    if type(history) in WEIGHTS or not history.changes_keys:
        return keys
    given = torch.as_tensor(keys.values).to(past[-1].weights)[None]
    watched, read = watch_reading(past[-1])
    found = history.change_keys(given, watched)[0]
    of = [keys, *remembered_symbols(sheet, past[-1], read, keys.axes[0])]
    part = type(history).__name__
    changed = sheet.opaque("k′_t", "keys_with_history", found, *keys.axes, of=of, part=part)
    sheet.formula(made_by_history(of), changed, *of)
    return changed


def made_by_history(of: Sequence[Symbol]) -> str:
    """The formula of what a history of one's own makes of these symbols."""
    return "{} = history(" + ", ".join(["{}"] * len(of)) + ")"


def watch_reading(past: Remembered) -> tuple[Remembered, list[str]]:
    """The record as before, and the names of its fields, in which each stands once it was read."""
    names = [field.name for field in fields(past)]
    read: list[str] = []
    kind = type(past)

    class Watched(kind):  # type: ignore[misc, valid-type]
        def __getattribute__(self, name: str) -> Any:
            if name in names and name not in read:
                read.append(name)
            return super().__getattribute__(name)

    watched = object.__new__(Watched)
    for name in names:
        object.__setattr__(watched, name, getattr(past, name))
    return watched, read


def remembered_symbols(
    sheet: Sheet, past: Remembered, names: Sequence[str], tokens: Axis
) -> list[Symbol]:
    """The fields of a record, of its only row, as symbols; α_t−1 are its weights."""
    symbols = []
    for name in names:
        value = getattr(past, name)
        if name == "weights":
            symbols.append(given_once(sheet, "α_t−1", "last_weights", past.weights[0], tokens))
            continue
        axes = []
        for place, size in enumerate(value.shape[1:]):
            is_of_tokens = place == 0 and size == tokens.size
            axes.append(tokens if is_of_tokens else Axis(f"N{place + 1}", size))
        numbers = value[0].to(past.weights)
        words = name.strip("_").replace("_", " ")  # an underscore would make an index of the rest
        symbols.append(given_once(sheet, f"past.{words}", "own_memory", numbers, *axes))
    return symbols


def given_once(sheet: Sheet, name: str, about: str, values: torch.Tensor, *axes: Axis) -> Symbol:
    """A symbol that keys and weights may both be made of; one with a prime where it has changed."""
    known = sheet.symbols.get(sheet.named(name))
    if known is None:
        return sheet.given(name, about, values, *axes)
    if np.array_equal(known.values, as_array(values)):
        return known
    return sheet.given(f"{name}′", about, values, *axes)


# What is made of the scores.


def move_forward(sheet: Sheet, history: Forward, weighing: Weighing) -> Symbol:
    """α = ((1 − u) α_t−1(i) + u α_t−1(i−1)) y / Σ."""
    past: Moving = weighing.past
    name, about = weighing.name, weighing.about
    y = weighing.normalised("y", "weights_before_change")
    before = weights_before(sheet, past, y.axes[0])
    shifted = sheet.compute("α_i−1", "weights_one_before", "one_before", before)
    u = sheet.given("u_t−1", "transition", past.transition[0])
    moved = sheet.compute("α_m", "moved_weights", "blend", before, u, shifted)
    reached = sheet.compute("α_m y", "reached_weights", "multiply", moved, y)
    whole = sheet.compute("Σ_m", "sum_of_weights", "total", reached)
    sheet.formula("{} = {}(i−1)", shifted, before)
    sheet.formula("{} = (1 − {}) {} + {} {}", moved, u, before, u, shifted)
    sheet.formula("{} = {} ∘ {}", reached, moved, y)
    sheet.formula("{} = Σ {}", whole, reached)
    if whole.values > LEAST:
        alpha = sheet.compute(name, about, "divide", reached, whole)
        sheet.formula("{} = {} / {}", alpha, reached, whole)
    else:  # next to nothing that may be seen can be reached
        alpha = sheet.compute(name, about, "add", y)
        sheet.formula("{} = {}", alpha, y)
    return alpha


def read_on(sheet: Sheet, history: Monotonic, weighing: Weighing) -> Symbol:
    """The first token with e + r ≥ 0 from where the last step stopped, or the mean choice."""
    before = weights_before(sheet, weighing.past, weighing.scores.axes[0])
    return stop(sheet, history, weighing.scores, before, weighing.name, weighing.about)


def stop(
    sheet: Sheet, history: ReadingOn[Any], scores: Symbol, before: Symbol, name: str, about: str
) -> Symbol:
    """Where a step stops, of its scores and of where the last one did: (S,)."""
    r = sheet.weight("r_m", "monotonic_bias", history.r)
    energy = sheet.compute("e+r_m", "choice_energy", "add", scores, r)
    p = sheet.compute("p", "choice_probability", "sigmoid", energy)
    sheet.formula("{} = {} + {}", energy, scores, r)
    sheet.formula("{} = sigmoid({})", p, energy)
    operation = "first_chosen" if history.hard else "mean_choice"
    stops = sheet.compute(name, about, operation, energy, before)
    words = "first({} ≥ 0, {})" if history.hard else "mean({}, {})"
    sheet.formula("{} = " + words, stops, energy, before)
    return stops


def compare_in_chunks(sheet: Sheet, history: Mocha, query: Symbol, values: Symbol) -> None:
    """The chunk energies ε = v · tanh(W q + U h) of a query and values: (S,)."""
    score = history.chunk_score
    width = Axis("A", len(score.v))
    W = sheet.weight("W_ε", "chunk_W", score.W.weight, width, query.axes[0])
    U = sheet.weight("U_ε", "chunk_U", score.U.weight, width, values.axes[1])
    v = sheet.weight("v_ε", "chunk_v", score.v, width)
    mapped_query = sheet.compute(f"W_ε {base(query)}", "chunk_query", "linear", W, query)
    mapped_values = sheet.compute(f"U_ε {base(values)}", "chunk_values", "linear", U, values)
    both = sheet.compute("S_ε", "sum_of_both", "add", mapped_query, mapped_values)
    T = sheet.compute("T_ε", "tanh_matrix", "tanh", both)
    energies = sheet.compute("ε_t", "chunk_energy", "dot", v, T)
    sheet.formula("{} = {} {}", mapped_query, W, query)
    sheet.formula("{} = {} {}", mapped_values, U, values)
    sheet.formula("{} = {} + {}", both, mapped_query, mapped_values)
    sheet.formula("{} = tanh({})", T, both)
    sheet.formula("{} = {} · {}", energies, v, T)


def look_at_chunks(sheet: Sheet, history: Mocha, weighing: Weighing) -> Symbol:
    """The softmax of the chunk energies over each chunk, in the mean over where it ends."""
    scores = weighing.scores
    before = sheet.given("z_t−1", "last_stop", weighing.past.weights[0], scores.axes[0])
    stops = stop(sheet, history, scores, before, "z_t", "stop")
    energies = sheet.symbols[sheet.named("ε_t")]
    if scores.operation == "mask":
        visible = scores.of[1]
        masked = sheet.compute("ε′", "masked_energy", "mask", energies, visible)
        sheet.formula("{} = {};  {} = 0 ⇒ −∞", masked, energies, visible)
        energies = masked
    alpha = sheet.compute(
        weighing.name, weighing.about, "chunk_softmax", stops, energies, size=history.chunk_size
    )
    sheet.formula("{} = chunks({}, {})", alpha, stops, energies)
    return alpha


WEIGHTS: Mapping[type, Callable[..., Symbol]] = {
    Forward: move_forward,
    ForwardWithAgent: move_forward,
    Monotonic: read_on,
    Mocha: look_at_chunks,
}


def makes_weights(history: Any) -> bool:
    """Whether the weights are other ones than those of the normaliser."""
    return type(history) not in KEYS and type(history).weigh is not History.weigh


def weigh_by_history(sheet: Sheet, history: Any, weighing: Weighing) -> Symbol:
    """The weights (S,) that a history makes of the scores."""
    if type(history) in WEIGHTS:
        return WEIGHTS[type(history)](sheet, history, weighing)
    return weigh_by_own_history(sheet, history, weighing)


def weigh_by_own_history(sheet: Sheet, history: Any, weighing: Weighing) -> Symbol:
    """The weights (S,) of a history from outside, with the arguments that it reads."""
    scores = weighing.scores
    given = torch.as_tensor(scores.values).to(weighing.past.weights)[None]
    past = history.read_scores(weighing.past, given)

    # 1. Which of what is remembered does it read, and what does it normalise?
    watched, read = watch_reading(past)
    calls: list[tuple[torch.Tensor, torch.Tensor]] = []

    def normalise(own: torch.Tensor) -> torch.Tensor:
        made = weighing.normalise(own).to(own)
        calls.append((own, made))
        return made

    found = history.weigh(given, normalise, watched)[0]

    # 2. Does it read the scores, other than to normalise them? Then others give other weights.
    answers = iter([made for _, made in calls])
    noise = torch.linspace(0.5, 1.5, given.shape[1], dtype=given.dtype, device=given.device)
    try:
        of_others = history.weigh(given + noise, lambda own: next(answers), past)[0]
        reads_scores = not torch.equal(of_others, found)
    except StopIteration:  # how often it normalises follows from the scores
        reads_scores = True

    # 3. The normaliser's own weights are a symbol of their own.
    of = []
    if reads_scores or not calls or any(not torch.equal(own, given) for own, _ in calls):
        of.append(scores)
    if any(torch.equal(own, given) for own, _ in calls):
        of.append(weighing.normalised("y", "weights_before_change"))
    of += remembered_symbols(sheet, past, read, scores.axes[0])
    part = type(history).__name__
    alpha = sheet.opaque(weighing.name, weighing.about, found, *scores.axes, of=of, part=part)
    sheet.formula(made_by_history(of), alpha, *of)
    return alpha


# What is remembered after the step.


def remember(sheet: Sheet, history: Any, query: Symbol, alpha: Symbol, context: Symbol) -> None:
    """The formulas of what a head remembers after the step, beside its weights."""
    if type(history) is Coverage:
        kappa = sheet.symbols[sheet.named("κ_t")]
        after = sheet.compute("κ_t+1", "coverage", "add", kappa, alpha)
        sheet.formula("{} = {} + {}", after, kappa, alpha)
    elif type(history) is ForwardWithAgent:
        ask_agent(sheet, history, context, query)


def ask_agent(sheet: Sheet, history: ForwardWithAgent, context: Symbol, query: Symbol) -> None:
    """u_t = sigmoid(v · tanh(W [c; q] + b) + b′)."""
    joined_axis = Axis("D+Q", context.axes[0].size + query.axes[0].size)
    joined = sheet.compute("[c; q]", "agent_input", "concat", context, query, axes=[joined_axis])
    width = Axis("A", history.W.weight.shape[0])
    W = sheet.weight("W_u", "agent_W", history.W.weight, width, joined_axis)
    b = sheet.weight("b_u", "agent_bias", history.W.bias, width)
    mapped = sheet.compute("W_u [c; q]", "agent_mapped", "linear", W, joined, b)
    hidden = sheet.compute("g_u", "agent_hidden", "tanh", mapped)
    v = sheet.weight("v_u", "agent_v", history.v.weight[0], width)
    bias = sheet.weight("b′_u", "agent_bias", history.v.bias[0])
    product = sheet.compute("v·g_u", "agent_product", "dot", v, hidden)
    total = sheet.compute("v·g_u+b′", "agent_sum", "add", product, bias)
    u = sheet.compute("u_t", "transition", "sigmoid", total)
    sheet.formula("{} = [{}; {}]", joined, context, query)
    sheet.formula("{} = {} {} + {}", mapped, W, joined, b)
    sheet.formula("{} = tanh({})", hidden, mapped)
    sheet.formula("{} = {} · {}", product, v, hidden)
    sheet.formula("{} = {} + {}", total, product, bias)
    sheet.formula("{} = sigmoid({})", u, total)
