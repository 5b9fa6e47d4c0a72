import numpy as np


def attention_weights(scores, mask):
    weights = np.exp(scores - scores.max(1, keepdims=True)) * mask
    return weights / weights.sum(1, keepdims=True)


def attention(query, keys, values, mask):
    weights = attention_weights(np.matmul(keys, query[..., None])[..., 0], mask)
    return np.matmul(weights[:, None], values)[:, 0], weights
