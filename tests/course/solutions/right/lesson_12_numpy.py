import numpy as np


def keras_attention(values, query, mask, W1, b1, W2, b2, V, b_v):
    inner = np.tanh((values @ W1 + b1) + np.expand_dims(query @ W2 + b2, 1))
    scores = np.where(mask, inner @ V + b_v, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    return (weights[..., None] * values).sum(1), weights


def probability(context, W3, b3, w4, b4):
    hidden = np.maximum(0, context @ W3 + b3)
    return 1 / (1 + np.exp(-(hidden @ w4 + b4)))
