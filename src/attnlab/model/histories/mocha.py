"""Monotonic chunkwise attention: read on until a token is chosen, and look at those before it too.

Axes: B batch, S source length, A hidden layer of the chunk energies, C tokens of a chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor
from torch.nn.functional import fold, pad

from attnlab.model.attention.bahdanau import BahdanauScore
from attnlab.model.attention.memory import Memory
from attnlab.model.histories.history import Remembered
from attnlab.model.histories.monotonic import ReadingOn
from attnlab.model.histories.starts import at_first_token
from attnlab.model.normalisers.normaliser import at_least_float32


@dataclass(frozen=True)
class InChunks(Remembered):
    """Where the last step stopped, alpha_{t-1}, which are not its weights, and chunk energies.

    The record that `read_scores` returns has alpha_t in their place.
    """

    projected: Tensor  # (B, S, A), U h_i of the chunk energies
    energies: Tensor  # (B, S), u_t; 0 before the first step


class Mocha(ReadingOn[InChunks]):
    """MoChA: a step stops as in `Monotonic`, and its weights are a softmax over the chunk there.

    Chiu and Raffel 2018, "Monotonic chunkwise attention", section 2.3. A chunk is the w tokens up
    to the one that is chosen. With alpha_t(k), how likely step t stops at token k, the weights are

        beta_t(i) = sum_{i <= k < i + w} alpha_t(k) exp(u_t(i)) / sum_{k - w < l <= k} exp(u_t(l))

    in the mean, which is what training computes. Validation and search stop at the first token with
    p >= 1/2 (algorithm 1), so that one chunk has all the weight. The next step reads on from where
    this one stopped, whatever it saw of the chunk. p is made of the scores of model/attention;
    the chunk energies u_t(i) = v · tanh(W q_t + U h_i) are a score of their own, Bahdanau's, of the
    query and of the values. A step that comes to the end without a choice has the context 0, and so
    have all steps after it. Weights that an intervention has set count as where a step stopped.

    Args:
        initial_bias: r at first; it is learned. Below 0 the attention reads far at first.
        noise: standard deviation of the normal noise on the scores in training; 0 for none.
        hard: whether validation and search choose; False has the mean there too.
        chunk_size: w, in tokens. With 1, the weights are those of `Monotonic`.
        size: width A of the hidden layer of the chunk energies.
    """

    def __init__(
        self,
        initial_bias: float,
        noise: NonNegativeFloat,
        hard: bool,
        chunk_size: PositiveInt,
        size: PositiveInt,
        *,
        query_size: int,
        value_size: int,
    ) -> None:
        super().__init__(initial_bias, noise, hard)
        self.chunk_size = chunk_size
        self.chunk_score = BahdanauScore(size, query_size=query_size, key_size=value_size)

    def first(self, memory: Memory) -> InChunks:
        assert memory.values is not None
        start = at_first_token(memory)
        projected = self.chunk_score.project_keys(memory.values)
        return InChunks(start, projected, torch.zeros_like(start))

    def before(self, past: InChunks, query: Tensor) -> InChunks:
        energies = self.chunk_score(query.unsqueeze(1), past.projected).squeeze(1)
        return replace(past, energies=at_least_float32(energies))

    def read_scores(self, past: InChunks, scores: Tensor) -> InChunks:
        return replace(past, weights=self.stops(scores, past.weights))

    def overrule(self, past: InChunks, weights: Tensor, rows: Tensor) -> InChunks:
        return replace(past, weights=torch.where(rows.unsqueeze(1), weights, past.weights))

    def weigh(
        self, scores: Tensor, normalise: Callable[[Tensor], Tensor], past: InChunks
    ) -> Tensor:
        energies = past.energies.masked_fill(scores == -torch.inf, -torch.inf)
        return chunk_weights(past.weights, energies, self.chunk_size)

    def after(self, past: InChunks, query: Tensor, context: Tensor, weights: Tensor) -> InChunks:
        return past


def chunk_weights(stops: Tensor, energies: Tensor, chunk_size: int) -> Tensor:
    """beta_t: a softmax over each chunk, in the mean over where it ends.

    Args:
        stops: (B, S), alpha_t; 0 at hidden tokens.
        energies: (B, S), u_t, minus infinity at hidden tokens.
        chunk_size: w.

    Returns:
        (B, S). A chunk that goes beyond the first token has fewer tokens.
    """
    length = energies.shape[-1]
    size = min(chunk_size, length)
    # 1. The softmax of each chunk, by the token that it ends with.
    chunks = pad(energies, (size - 1, 0), value=-torch.inf).unfold(1, size, 1)  # (B, S, C)
    # Of hidden tokens alone, it would be 0 / 0; no step stops there.
    is_hidden = (chunks == -torch.inf).all(-1, keepdim=True)
    shares = chunks.masked_fill(is_hidden, 0).softmax(-1)
    # 2. Of each token, the sum of its shares of all chunks that it is in.
    weighted = (stops.unsqueeze(2) * shares).mT  # (B, C, S)
    summed = fold(weighted, output_size=(1, size - 1 + length), kernel_size=(1, size))
    return summed[:, 0, 0, size - 1 :]
