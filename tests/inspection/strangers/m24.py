import torch
import torch.nn as nn


class BahdanauAttention(nn.Module):
    def __init__(self, hidden=16, attn=24):
        super().__init__()
        self.Wa = nn.Linear(hidden, attn)
        self.Ua = nn.Linear(hidden, attn, bias=False)
        self.Va = nn.Linear(attn, 1, bias=False)

    def forward(self, query, keys, values, mask):
        # query (B, D)
        e = self.Va(torch.tanh(self.Wa(query).unsqueeze(1) + self.Ua(keys))).squeeze(-1)
        e = torch.where(mask, e, torch.full_like(e, float("-inf")))
        a = e.softmax(dim=-1)
        c = (a.unsqueeze(-1) * values).sum(dim=1)
        return c, a


def build():
    return BahdanauAttention()
