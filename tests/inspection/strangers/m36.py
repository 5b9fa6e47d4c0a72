import torch
from torch import nn


class TiedAttention(nn.Module):
    def __init__(self, dim=16, inner=32):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.query_proj = nn.Linear(dim, inner, bias=False)
        self.key_proj = nn.Linear(dim, inner, bias=False)
        # one shared space for both sides
        self.key_proj.weight = self.query_proj.weight
        self.scale = inner**-0.5

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        q = self.query_proj(self.norm(query)) * self.scale
        sim = q @ self.key_proj(keys).mT
        neg = torch.finfo(sim.dtype).min
        sim = torch.where(mask.unsqueeze(1), sim, neg)
        attn = sim.softmax(-1)
        return attn, attn @ values


def build():
    return TiedAttention()
