import torch
import torch.nn as nn


class ContextPooling(nn.Module):
    def __init__(self, dim=16, att=16):
        super().__init__()
        self.q_proj = nn.Linear(dim, att)
        self.k_proj = nn.Linear(dim, att, bias=False)
        self.w = nn.Linear(att, 1, bias=False)

    def forward(self, query, keys, values, mask):
        # query: (B, D)
        hidden = torch.tanh(self.q_proj(query)[:, None] + self.k_proj(keys))
        att = torch.softmax(self.w(hidden), dim=1)
        att = att.masked_fill(~mask.unsqueeze(-1), 0.0)
        return (att * values).sum(1)


def build():
    return ContextPooling()
