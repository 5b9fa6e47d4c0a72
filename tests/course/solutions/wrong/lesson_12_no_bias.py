# says: the biases of both Dense layers are missing
import torch


def keras_attention(values, query, mask, W1, b1, W2, b2, V, b_v):
    inner = torch.tanh(values @ W1 + (query @ W2)[:, None])
    weights = (inner @ V + b_v).masked_fill(~mask, -torch.inf).softmax(1)
    return torch.einsum("bs,bsd->bd", weights, values), weights
