import torch


def keras_attention(values, query, mask, W1, b1, W2, b2, V, b_v):
    inner = torch.tanh(values @ W1 + b1 + (query @ W2 + b2).unsqueeze(1))
    # The bias of the scores moves all of them alike, so the softmax does not see it.
    weights = (inner @ V).masked_fill(~mask, -torch.inf).softmax(1)
    return torch.einsum("bs,bsd->bd", weights, values), weights


def probability(context, W3, b3, w4, b4):
    return torch.sigmoid(torch.relu(context @ W3 + b3) @ w4 + b4)
