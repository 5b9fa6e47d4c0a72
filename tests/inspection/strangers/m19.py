import torch
import torch.nn as nn


class TemperatureAttention(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, dim, bias=False)
        self.temperature = nn.Parameter(torch.tensor(dim**0.5))

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        sim = torch.einsum("btd,bsd->bts", self.q(query), self.k(keys))
        sim = sim / max(self.temperature.item(), 1e-2)
        sim = torch.where(mask[:, None, :], sim, float("-inf"))
        attn = sim.softmax(dim=-1)
        return torch.einsum("bts,bsv->btv", attn, values), attn


def build():
    return TemperatureAttention()
