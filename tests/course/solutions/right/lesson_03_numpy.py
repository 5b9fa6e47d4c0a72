import numpy as np


def attention_weights(scores, mask):
    scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attention(query, keys, values, mask):
    scores = np.einsum("bd,bsd->bs", query, keys)
    weights = attention_weights(scores, mask)
    return np.einsum("bs,bse->be", weights, values), weights
