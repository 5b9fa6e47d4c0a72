# says: this exercise does not scale them
import torch


def projected_attention(query, states, W_q, W_k, mask):
    e = torch.einsum("ba,bsa->bs", query @ W_q.T, states @ W_k.T) / W_q.shape[0] ** 0.5
    w = e.masked_fill(~mask, -torch.inf).softmax(1)
    return torch.einsum("bs,bsd->bd", w, states), w
