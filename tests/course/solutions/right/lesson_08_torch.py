import torch
from torch.nn.functional import linear


def energy(query, keys, W_a):
    return torch.bmm(query @ W_a, keys.transpose(1, 2))


def projected_attention(query, states, W_q, W_k, mask):
    scores = energy(linear(query, W_q).unsqueeze(1), linear(states, W_k), torch.eye(len(W_q)))
    weights = scores.masked_fill(~mask[:, None], -torch.inf).softmax(2)
    return torch.bmm(weights, states).squeeze(1), weights.squeeze(1)
