import torch


def energy(query, keys, W_a):
    return torch.bmm(query, (keys @ W_a.T).transpose(-2, -1))


def projected_attention(query, states, W_q, W_k, mask):
    # One matrix does what both projections do: (W_q s)ᵀ (W_k h) = sᵀ (W_qᵀ W_k) h.
    M = W_q.T @ W_k
    e = energy(query.unsqueeze(1), states, M)
    w = e.masked_fill(mask.unsqueeze(1) == 0, float("-inf")).softmax(-1)
    return w.bmm(states).squeeze(1), w.squeeze(1)
