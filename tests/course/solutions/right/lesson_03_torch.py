import torch


def attention_weights(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


def attention(query, keys, values, mask):
    scores = torch.bmm(keys, query.unsqueeze(2)).squeeze(2)
    weights = attention_weights(scores, mask)
    context = torch.bmm(weights.unsqueeze(1), values).squeeze(1)
    return context, weights
