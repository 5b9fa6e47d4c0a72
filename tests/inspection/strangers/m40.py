import torch
import torch.nn as nn


class HeadwiseAttention(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, query, keys, values, mask):
        # query: (b, t, d)
        q = self.q(query).unflatten(-1, (self.heads, -1))
        k = self.k(keys).unflatten(-1, (self.heads, -1))
        v = self.v(values).unflatten(-1, (self.heads, -1))
        bias = (1.0 - mask.to(q.dtype)) * -10.0
        logits = torch.einsum("bthd,bshd->bhts", q, k) * q.size(-1) ** -0.5
        weights = torch.softmax(logits + bias[:, None, None, :], dim=-1)
        out = torch.einsum("bhts,bshd->bthd", weights, v).flatten(2)
        return self.out(out), weights


def build():
    return HeadwiseAttention()
