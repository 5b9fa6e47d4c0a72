"""Reference computations for the tests of the searches.

They are a sentence's probability step by step, and all possible sentences.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from attnlab.batch import BOS, EOS, PAD
from attnlab.search.search import Hypothesis, next_log_probs

DECODERS = ["attend_then_step", "step_then_attend", "no_attention"]
# Seed -> how much larger than at birth the weights are, and what is added to <eos>'s logit: models
# that care which token comes, and of whose sentences some end at once, some later and some never.
OPINIONS = {16: (4.0, 3.0), 18: (4.0, 3.0), 20: (3.0, 0.0)}
SEEDS = list(OPINIONS)


@torch.no_grad()
def forced(model, source, mask, tokens: list[int]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Log-probabilities (len, V) and attention weights of one sentence.

    They are those of the model when it reads `tokens`.
    """
    memory, state = model.encode(source, mask)
    log_probs, weights = [], []
    for token in [BOS, *tokens[:-1]]:
        logits, state, attention = model.step(torch.tensor([token]), state, memory)
        log_probs.append(next_log_probs(logits.clone())[0])
        weights.append(attention)
    return torch.stack(log_probs), None if weights[0] is None else torch.cat(weights)


def log_prob(model, source, mask, tokens: list[int]) -> float:
    rows, _ = forced(model, source, mask, tokens)
    return sum(row[token].item() for row, token in zip(rows, tokens, strict=True))


def written(hypothesis: Hypothesis) -> list[int]:
    return [*hypothesis.tokens, EOS] if hypothesis.finished else hypothesis.tokens


def all_sequences(vocabulary: int, limit: int, min_length: int = 0) -> list[list[int]]:
    """Every sequence of at most `limit` tokens that ends with <eos>.

    Also every sequence of `limit` tokens that does not.
    """
    words = [token for token in range(vocabulary) if token not in (PAD, BOS, EOS)]
    ended = [
        [*body, EOS]
        for n in range(min_length, limit)
        for body in itertools.product(words, repeat=n)
    ]
    return ended + [list(body) for body in itertools.product(words, repeat=limit)]


def wu_score(model, source, mask, tokens: list[int], alpha: float, beta: float) -> float:
    """Wu et al. 2016, equation 14, in NumPy: log P(Y|X) / lp(Y) + cp(X; Y)."""
    rows, weights = forced(model, source, mask, tokens)
    total = sum(float(row[token]) for row, token in zip(rows.numpy(), tokens, strict=True))
    penalty = (5 + len(tokens)) ** alpha / (5 + 1) ** alpha
    if beta == 0:
        return total / penalty
    # p[j, i]: how much target token j looked at source token i
    p = weights.numpy().astype(np.float64)
    coverage = 0.0
    for i in range(p.shape[1]):
        if mask[0, i]:
            coverage += math.log(min(sum(p[j, i] for j in range(len(tokens))), 1.0))
    return total / penalty + beta * coverage
