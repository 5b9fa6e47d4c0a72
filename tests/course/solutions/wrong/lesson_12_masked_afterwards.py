# says: sum to 0.
import torch


def keras_attention(values, query, mask, W1, b1, W2, b2, V, b_v):
    inner = torch.tanh(values @ W1 + b1 + (query @ W2 + b2)[:, None])
    weights = (inner @ V + b_v).softmax(1) * mask
    return torch.einsum("bs,bsd->bd", weights, values), weights
