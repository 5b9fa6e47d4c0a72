import torch


def attention_weights(scores, mask):
    hidden = scores + (1.0 - mask.to(scores.dtype)) * -1e9
    return torch.nn.functional.softmax(hidden, dim=1)


def attention(query, keys, values, mask):
    scores = (query[:, None, :] * keys).sum(-1)
    weights = attention_weights(scores, mask)
    return (weights[:, :, None] * values).sum(1), weights
