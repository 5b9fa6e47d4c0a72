"""Attention of one query over one sentence: score, window, normalise, average.

In one head or several.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paper_equations.cells import Weights, part
from paper_equations.normalisers import NORMALISERS
from paper_equations.scopes import local_m, local_p
from paper_equations.scores import CONTENT_SCORES, location


@dataclass(frozen=True)
class Attention:
    score: str
    projection: bool = False
    normaliser: str = "softmax"
    scope: str = "global"
    width: int = 2
    heads: int | None = None


def attend(choice: Attention, w: Weights, s, values, t: int, coverage: list | None = None):
    """One query (H,) over one sentence: the context (D,), and a head's weights (S,).

    Given are encoder outputs (S, D), and what each head has seen so far (S,).

    Several heads are Vaswani et al. 2017, 3.2.2: concat(head_1, ..., head_N) W_O, each over
    projections of its own.
    """
    if choice.heads is None:
        weights = weigh(choice, w, s, values, t, None if coverage is None else coverage[0])
        return weights @ values, [weights]
    contexts, all_weights = [], []
    for head in range(choice.heads):
        w_q, w_k, w_v = (np.split(w[f"W_{name}.weight"], choice.heads)[head] for name in "QKV")
        keys = np.array([w_k @ h for h in values])
        seen = None if coverage is None else coverage[head]
        weights = weigh(choice, part(w, f"attentions.{head}."), w_q @ s, keys, t, seen)
        contexts.append(weights @ np.array([w_v @ h for h in values]))
        all_weights.append(weights)
    return w["W_O.weight"] @ np.concatenate(contexts), all_weights


def weigh(choice: Attention, w: Weights, s, keys, t: int, coverage=None):
    """The weights (S,) of all source tokens."""
    n = len(keys)
    seen = [0.0] * n if coverage is None else [w["coverage.w.weight"][:, 0] * c for c in coverage]
    scores = np.array(
        [score_of(choice, part(w, "score."), s, keys[i], i, seen[i]) for i in range(n)]
    )
    inside, emphasis = np.ones(n, bool), np.ones(n)
    if choice.scope == "local_m":
        inside, emphasis = local_m(t, n, choice.width)
    elif choice.scope.startswith("local_p"):
        inside, emphasis = local_p(part(w, "scope."), s, n, choice.width)
    weights = np.zeros(n)
    normalise = NORMALISERS[choice.normaliser]
    weights[inside] = normalise(scores[inside], part(w, "normaliser.")) * emphasis[inside]
    return weights / weights.sum() if choice.scope == "local_p_renormalised" else weights


def score_of(choice: Attention, w: Weights, s, h, i: int, seen):
    if choice.score == "location":
        return location(w, s, i)
    if choice.projection:
        s, h, w = w["P.weight"] @ s, w["R.weight"] @ h, part(w, "score.")
    return CONTENT_SCORES[choice.score](w, s, h, seen)
