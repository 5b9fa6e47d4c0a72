# says: no gradient flows from the result to query, keys
import torch


def attention(query, keys, values, mask):
    scores = torch.einsum("bd,bsd->bs", query, keys)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(1)
    return torch.einsum("bs,bse->be", weights.detach(), values), weights
