"""Five scores side by side, on the same query and encoder vectors.

Axes: Q query, D encoder vectors, S source tokens, A hidden layer of the additive scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from attnlab.model.attention.attention import MultiHeadAttention
from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.concat import ConcatScore
from attnlab.model.attention.general import GeneralScore
from attnlab.model.attention.location import LocationScore
from attnlab.model.attention.memory import Memory
from attnlab.tasks.edited_source import heads_of, score_of, score_positions
from attnlab.tasks.symbols.operations import Array, mask, softmax
from attnlab.tasks.symbols.sheet import as_array, plain_numbers

SEED = 1  # of weights that the model does not have
HIDDEN = 4  # width of the additive scores that the model does not have


@dataclass(frozen=True)
class Compared:
    """A score of the comparison.

    energies: (S,); None where the score cannot compare vectors of these widths.
    weights_from: where its matrices come from: the `model`, `drawn` with the seed, the `identity`,
        or `none` for a score without any.
    """

    name: str
    formula: str
    energies: Array | None
    weights_from: str


def five_scores_of_heads(
    attention: Any, query: Tensor, outputs: Tensor, memory: Memory
) -> list[list[dict[str, Any]]]:
    """Of each head, `five_scores` on what that head compares.

    Several heads compare their own projections of the query and of the encoder vectors.

    Args:
        query: (Q,), that the attention was asked with.
        outputs: of the encoder, (S, D).
        memory: of the one sentence.
    """
    heads = heads_of(attention)
    queries, vectors, memories = [query], [outputs], [memory]
    if type(attention) is MultiHeadAttention:
        queries = list(attention.W_Q(query).chunk(len(heads), dim=-1))
        vectors = list(attention.W_K(outputs).chunk(len(heads), dim=-1))
        memories = [memory.head(number) for number in range(len(heads))]

    of_heads = []
    for number, own in enumerate(memories):
        scores = five_scores(
            query=as_array(queries[number]),
            vectors=as_array(vectors[number]),
            visible=None if own.mask is None else as_array(own.mask[0]),
            positions=as_array(score_positions(own)[0]),
            score=score_of(heads[number]),
        )
        of_heads.append(scores)
    return of_heads


def five_scores(
    query: Array, vectors: Array, visible: Array | None, positions: Array, score: Any
) -> list[dict[str, Any]]:
    """Dot, scaled dot, general, concat in both forms, and location.

    Args:
        query: (Q,).
        vectors: of the encoder, (S, D).
        visible: (S,), 1 or 0; None where all may be seen.
        positions: (S,), of the tokens.
        score: of the model; its matrices are used in its own row.

    Returns:
        of each score `name`, `formula`, `energies` and `weights` (S numbers, or None for both
        where query and vectors have different widths), `weights_from` as in `Compared`, and `seed`
        where weights were drawn.
    """
    rows = []
    for compare in COMPARED:
        found = compare(query, vectors, positions, score)
        row: dict[str, Any] = {
            "name": found.name,
            "formula": found.formula,
            "weights_from": found.weights_from,
            "energies": None,
            "weights": None,
        }
        if found.weights_from == "drawn":
            row["seed"] = SEED
        if found.energies is not None:
            seen = found.energies if visible is None else mask(found.energies, visible)
            row["energies"] = plain_numbers(found.energies)
            if np.isfinite(seen).any():
                row["weights"] = plain_numbers(softmax(seen))
        rows.append(row)
    return rows


def drawn(*shape: int) -> Array:
    """Weights as torch draws those of a linear layer, always the same."""
    bound = shape[-1] ** -0.5
    return np.random.default_rng(SEED).uniform(-bound, bound, shape)


def dot(query: Array, vectors: Array, positions: Array, score: Any) -> Compared:
    fits = len(query) == vectors.shape[1]
    return Compared("dot", "sᵀ h", vectors @ query if fits else None, "none")


def scaled_dot(query: Array, vectors: Array, positions: Array, score: Any) -> Compared:
    plain = dot(query, vectors, positions, score).energies
    energies = None if plain is None else plain / np.sqrt(len(query))
    return Compared("scaled_dot", "sᵀ h / √d", energies, "none")


def general(query: Array, vectors: Array, positions: Array, score: Any) -> Compared:
    width = vectors.shape[1]
    if type(score) is GeneralScore and score.W.weight.shape == (len(query), width):
        W, origin = as_array(score.W.weight), "model"
    elif len(query) == width:
        W, origin = np.eye(width), "identity"
    else:
        W, origin = drawn(len(query), width), "drawn"
    return Compared("general", "sᵀ W h", vectors @ W.T @ query, origin)


def concat(query: Array, vectors: Array, positions: Array, score: Any) -> Compared:
    """Luong's form: one matrix over the joined vectors."""
    joined = len(query) + vectors.shape[1]
    if type(score) is ConcatScore and score.W.weight.shape[1] == joined:
        W, v, origin = as_array(score.W.weight), as_array(score.v), "model"
    else:
        W, v, origin = drawn(HIDDEN, joined), drawn(1, HIDDEN)[0], "drawn"
    queries = np.broadcast_to(query, (len(vectors), len(query)))
    hidden = np.tanh(np.concatenate([queries, vectors], axis=1) @ W.T)
    return Compared("concat", "vᵀ tanh(W [s; h])", hidden @ v, origin)


def additive(query: Array, vectors: Array, positions: Array, score: Any) -> Compared:
    """Bahdanau's form: a matrix for each of the two vectors."""
    width = vectors.shape[1]
    is_own = type(score) is BahdanauScore and (
        score.W.weight.shape[1] == len(query) and score.U.weight.shape[1] == width
    )
    if is_own:
        v, origin = as_array(score.v), "model"
        from_query = query @ as_array(score.W.weight).T
        from_vectors = vectors @ as_array(score.U.weight).T
        if score.W.bias is not None:
            from_query = from_query + as_array(score.W.bias)
            from_vectors = from_vectors + as_array(score.U.bias)
    else:
        v, origin = drawn(1, HIDDEN)[0], "drawn"
        from_query = query @ drawn(HIDDEN, len(query)).T
        from_vectors = vectors @ drawn(HIDDEN, width).T
    energies = np.tanh(from_query + from_vectors) @ v
    return Compared("additive", "vᵀ tanh(W s + U h)", energies, origin)


def location(query: Array, vectors: Array, positions: Array, score: Any) -> Compared:
    places = positions.astype(np.int64)
    if type(score) is LocationScore and score.W.weight.shape[1] == len(query):
        W, origin = as_array(score.W.weight), "model"
    else:
        W, origin = drawn(int(places.max()) + 1, len(query)), "drawn"
    return Compared("location", "W s", (W @ query)[places], origin)


COMPARED: tuple[Callable[[Array, Array, Array, Any], Compared], ...] = (
    dot,
    scaled_dot,
    general,
    concat,
    additive,
    location,
)
