# says: the softmax runs over the batch
import torch


def keras_attention(values, query, mask, W1, b1, W2, b2, V, b_v):
    inner = torch.tanh(values @ W1 + b1 + (query @ W2 + b2)[:, None])
    scores = (inner @ V + b_v).masked_fill(~mask, -torch.inf)
    weights = torch.nan_to_num(scores.softmax(0))
    return torch.einsum("bs,bsd->bd", weights, values), weights
