import math

import torch
from torch.nn.functional import linear


def scaled_dot(query, keys):
    return torch.einsum("bd,bsd->bs", query, keys) / math.sqrt(query.size(-1))


def general(query, keys, W):
    return (query.unsqueeze(1) @ linear(keys, W).transpose(1, 2)).squeeze(1)


def concat(query, keys, W_a, W_b):
    # The left part of the matrix meets the query, the right part each key.
    width = query.shape[1]
    inner = linear(query, W_b[:, :width]).unsqueeze(1) + linear(keys, W_b[:, width:])
    return inner.tanh() @ W_a


def location(query, W_a, mask):
    return linear(query, W_a).masked_fill(~mask, -torch.inf).softmax(-1)
