import torch
from torch import nn


class GeneralAttention(nn.Module):
    def __init__(self, query_dim: int, key_dim: int):
        super().__init__()
        self.W = nn.Linear(query_dim, key_dim, bias=False)

    def forward(self, query, keys, values, mask):
        """query [b, d] -> (alpha [b, s], context [b, v])"""
        logits = torch.einsum("bd,bsd->bs", self.W(query), keys)
        logits[~mask] = -torch.inf
        alpha = torch.softmax(logits, -1)
        return alpha, torch.einsum("bs,bsv->bv", alpha, values)


def build():
    return GeneralAttention(16, 16)
