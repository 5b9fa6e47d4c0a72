import numpy as np


def scaled_dot(query, keys):
    return (keys @ query[:, :, None])[:, :, 0] / np.sqrt(keys.shape[-1])


def general(query, keys, W):
    return np.einsum("bh,hd,bsd->bs", query, W, keys)


def concat(query, keys, W_a, W_b):
    repeated = np.broadcast_to(query[:, None], (*keys.shape[:2], query.shape[1]))
    return np.tanh(np.concatenate([repeated, keys], 2) @ W_b.T) @ W_a


def location(query, W_a, mask):
    z = np.where(mask, query @ W_a.T, -1e9)
    z = np.exp(z - z.max(1, keepdims=True))
    return z / z.sum(1, keepdims=True)
