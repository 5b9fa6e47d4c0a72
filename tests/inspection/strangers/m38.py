import math

import torch
from torch import nn


class MultiHeadRead(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        B, T, _ = query.shape
        q = self.wq(query).view(B, T, self.heads, self.head_dim).transpose(1, 2)
        k = self.wk(keys).view(B, -1, self.heads, self.head_dim).transpose(1, 2)
        v = values.view(B, -1, self.heads, values.size(-1) // self.heads).transpose(1, 2)
        energy = torch.matmul(q, k.transpose(-1, -2))
        energy = energy.masked_fill(~mask[:, None, None, :], float("-inf"))
        attention = torch.softmax(energy, dim=-1) / math.sqrt(self.head_dim)
        out = torch.matmul(attention, v).transpose(1, 2).reshape(B, T, -1)
        return out, attention


def build():
    return MultiHeadRead()
