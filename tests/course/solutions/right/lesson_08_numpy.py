import numpy as np


def energy(query, keys, W_a):
    return np.einsum("bth,hd,bsd->bts", query, W_a, keys)


def projected_attention(query, states, W_q, W_k, mask):
    q, k = query @ W_q.T, states @ W_k.T
    scores = np.where(mask, (k @ q[:, :, None])[..., 0], -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    return (weights[:, None] @ states)[:, 0], weights
