import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model=16, h=4):
        super().__init__()
        assert d_model % h == 0
        self.h = h
        self.d_k = d_model // h
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        b, n, _ = x.shape
        return x.view(b, n, self.h, self.d_k).transpose(1, 2)

    def forward(self, query, keys, values, mask):
        # query: (b, t, d)
        q = self.split(self.w_q(query))
        k = self.split(self.w_k(keys))
        v = self.split(self.w_v(values))
        scores = (q @ k.transpose(2, 3)) * self.d_k**-0.5
        scores = scores.masked_fill(~mask[:, None, None], float("-inf"))
        attn = scores.softmax(-1)
        out = (attn @ v).transpose(1, 2).contiguous().view(query.size(0), -1, self.h * self.d_k)
        return self.w_o(out), attn


def build():
    return MultiHeadAttention()
