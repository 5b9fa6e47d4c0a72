import math

import torch
import torch.nn as nn


class MultiHead(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads = heads
        self.lin_q = nn.Linear(dim, dim, bias=False)
        self.lin_k = nn.Linear(dim, dim, bias=False)
        self.lin_v = nn.Linear(dim, dim, bias=False)
        self.lin_o = nn.Linear(dim, dim, bias=False)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        B, T, D = query.size()
        S = keys.size(1)
        q = self.lin_q(query).view(B, T, self.heads, -1).transpose(1, 2)
        k = self.lin_k(keys).view(B, S, self.heads, -1).transpose(1, 2)
        v = self.lin_v(values).view(B, S, self.heads, -1).transpose(1, 2)
        score = q.matmul(k.transpose(2, 3)) / math.sqrt(q.size(-1))
        score = score.masked_fill(mask.view(B, 1, 1, S) == 0, float("-inf"))
        attn = torch.softmax(score, dim=-1)
        ctx = attn.matmul(v).reshape(B, T, D)
        return self.lin_o(ctx), attn


def build():
    return MultiHead()
