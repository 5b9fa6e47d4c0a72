# says: it is the plain mean
import numpy as np


def attention(query, keys, values, mask):
    scores = np.einsum("bd,bsd->bs", query, keys)
    weights = attention_weights(scores, mask)
    return np.stack([v[real].mean(0) for v, real in zip(values, mask, strict=True)]), weights
