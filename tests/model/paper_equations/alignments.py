"""Sums over all alignments of a target with its source, by products of matrices.

Axes: S source, V vocabulary. A transition (S, S) has p(a_t = i | a_{t-1} = j) in row j; before the
first step an alignment stands at the first source token.
"""

from __future__ import annotations

import itertools

import numpy as np

from paper_equations.cells import Weights

REACH = 1  # of the tests' small models


def transition_of(output: str, w: Weights, weights, s, values) -> np.ndarray:
    """p(a_t | a_{t-1}) of a step with these attention weights (S,).

    Args:
        w: of the output.
        s: the decoder's state, (H,).
        values: of the source tokens, (S, D).
    """
    if output == "hard_attention":  # Wu et al. 2018, equation 6: a_t knows the state alone
        return np.tile(weights, (len(weights), 1))

    transition = np.zeros((len(weights), len(weights)))
    for j, h in enumerate(values):
        for i in range(len(weights)):
            factor = float(i >= j)  # Wu and Cotterell 2019
            if output.startswith("first_order"):
                factor = np.exp(score_of_move(output, w, s, h, i - j))
            transition[j, i] = weights[i] * factor
        if transition[j].sum() == 0:
            transition[j, j] = 1.0
    return transition / transition.sum(1, keepdims=True)


def score_of_move(output: str, w: Weights, s, h, move: int) -> float:
    """How well a move from a source token with the value h goes with the state s.

    -inf beyond the reach (Wu and Cotterell 2019, the first-order model).
    """
    least = -REACH if output.endswith("both_ways") else 0
    if not least <= move <= REACH:
        return -np.inf
    o = move - least
    of_state = w["of_state.weight"][o] @ s + w["of_state.bias"][o]
    return float(of_state + w["of_value.weight"][o] @ h)


def next_log_probs(transitions, emissions, written) -> np.ndarray:
    """log P(y_t | y_<t) of the last of these steps: (V,).

    Args:
        transitions: of each step.
        emissions: log p(. | a_t = i) of each step, (S, V).
        written: the tokens of all steps but the last.
    """
    belief = np.eye(len(transitions[0]))[0]
    for transition, emission, token in zip(transitions, emissions, written, strict=False):
        belief = (belief @ transition) * np.exp(emission[:, token])
        belief /= belief.sum()
    return np.log((belief @ transitions[-1]) @ np.exp(emissions[-1]))


def posterior(transitions, emissions, target) -> list[np.ndarray]:
    """p(a_t | y, x) of each step: the probability of what is before, times that of what follows."""
    steps = len(target)
    own = [np.exp(emissions[t][:, target[t]]) for t in range(steps)]
    before = np.eye(len(transitions[0]))[0]
    forward = []
    for t in range(steps):
        before = (before @ transitions[t]) * own[t]
        before /= before.sum()
        forward.append(before)
    behind = np.ones(len(before))
    found = []
    for t in reversed(range(steps)):
        joint = forward[t] * behind
        found.append(joint / joint.sum())
        behind = transitions[t] @ (own[t] * behind)
        behind /= behind.max()
    return found[::-1]


def every_alignment(transitions, emissions, target) -> tuple[float, list[np.ndarray]]:
    """log P(y | x) and p(a_t | y, x), by a sum over each of the S^T alignments."""
    size, steps = len(transitions[0]), len(target)
    total, at = 0.0, np.zeros((steps, size))
    for alignment in itertools.product(range(size), repeat=steps):
        probability, last = 1.0, 0
        for t, i in enumerate(alignment):
            probability *= transitions[t][last, i] * np.exp(emissions[t][i, target[t]])
            last = i
        total += probability
        for t, i in enumerate(alignment):
            at[t, i] += probability
    return float(np.log(total)), list(at / total)
