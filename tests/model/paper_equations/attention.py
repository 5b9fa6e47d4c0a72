"""Attention of one query over one sentence: score, window, normalise, average.

In one head or several.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paper_equations import histories
from paper_equations.cells import Weights, part
from paper_equations.histories import Past
from paper_equations.normalisers import NORMALISERS
from paper_equations.scopes import local_m, local_p
from paper_equations.scores import CONTENT_SCORES, delta_rule, location


@dataclass(frozen=True)
class Attention:
    score: str
    projection: bool = False
    normaliser: str = "softmax"
    scope: str = "global"
    width: int = 2
    heads: int | None = None
    history: str = "none"
    gate: str = "none"


def attend(choice: Attention, w: Weights, s, values, t: int, pasts: list[Past]):
    """One query (H,) over one sentence: the context (D,), each head's weights (S,) and past after.

    Given are encoder outputs (S, D), and what each head remembers.

    Several heads are Vaswani et al. 2017, 3.2.2: concat(head_1, ..., head_N) W_O, each over
    projections of its own.
    """
    if choice.heads is None:
        weights, past = weigh(choice, w, s, values, values, t, pasts[0])
        context = behind_gate(choice, w, s, [weights @ values])
        own = part(w, "history.")
        return (
            context,
            [weights],
            [histories.after(choice.history, own, past, s, context, weights)],
        )
    contexts, all_weights, after = [], [], []
    for head in range(choice.heads):
        w_q, w_k, w_v = (np.split(w[f"W_{name}.weight"], choice.heads)[head] for name in "QKV")
        keys = np.array([w_k @ h for h in values])
        of_values = np.array([w_v @ h for h in values])
        of_head = part(w, f"attentions.{head}.")
        query = w_q @ s
        weights, past = weigh(choice, of_head, query, keys, of_values, t, pasts[head])
        contexts.append(weights @ of_values)
        all_weights.append(weights)
        own = part(of_head, "history.")
        remembered = (past, query, contexts[-1], weights)
        after.append(histories.after(choice.history, own, *remembered))
    return w["W_O.weight"] @ behind_gate(choice, w, s, contexts), all_weights, after


def behind_gate(choice: Attention, w: Weights, s, contexts):
    """The heads' contexts side by side, behind a gate (Xu et al. 2015; Qiu et al. 2025)."""
    joined = np.concatenate(contexts)
    if choice.gate == "none":
        return joined
    openness = 1 / (1 + np.exp(-(w["gate.W.weight"] @ s + w["gate.W.bias"])))
    if choice.gate == "elementwise":
        return openness * joined
    return np.concatenate([g * c for g, c in zip(openness, contexts, strict=True)])


def weigh(choice: Attention, w: Weights, s, keys, values, t: int, past: Past):
    """The weights (S,) of all source tokens, and the past with what the step chose."""
    n = len(keys)
    remembers = part(w, "history.")
    seen = [histories.added_to_key(choice.history, remembers, past, i) for i in range(n)]
    of_score = part(w, "score.")
    if choice.score == "delta_rule":
        scores = scores_of_all(choice, of_score, s, keys, seen)
    else:
        scores = np.array([score_of(choice, of_score, s, keys[i], i, seen[i]) for i in range(n)])
    inside, emphasis = np.ones(n, bool), np.ones(n)
    if choice.scope == "local_m":
        inside, emphasis = local_m(t, n, choice.width)
    elif choice.scope.startswith("local_p"):
        inside, emphasis = local_p(part(w, "scope."), s, n, choice.width)

    def normalise(some_scores):
        return NORMALISERS[choice.normaliser](some_scores, part(w, "normaliser."))

    past = histories.chosen(choice.history, remembers, past, scores, inside, s, values)
    weights = emphasis * histories.weights_of(
        choice.history, remembers, scores, normalise, past, inside
    )
    if choice.scope == "local_p_renormalised" and weights.any():
        return weights / weights.sum(), past
    return weights, past


def scores_of_all(choice: Attention, w: Weights, s, keys, seen):
    """Of a score whose keys depend on each other."""
    if choice.projection:
        s, keys, w = w["P.weight"] @ s, [w["R.weight"] @ h for h in keys], part(w, "score.")
    return delta_rule(w, s, keys, seen)


def score_of(choice: Attention, w: Weights, s, h, i: int, seen):
    if choice.score == "location":
        return location(w, s, i)
    if choice.projection:
        s, h, w = w["P.weight"] @ s, w["R.weight"] @ h, part(w, "score.")
    return CONTENT_SCORES[choice.score](w, s, h, seen)
