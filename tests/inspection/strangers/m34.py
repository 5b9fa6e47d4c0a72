import torch
from torch import nn


class MaskedDot(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, query, keys, values, mask):
        # query: (B, D)
        keys = keys * mask.unsqueeze(-1).to(keys.dtype)
        scores = torch.einsum("bd,bsd->bs", self.norm(query), keys) / keys.size(-1) ** 0.5
        weights = scores.softmax(dim=-1)
        context = torch.einsum("bs,bsv->bv", weights, values)
        return context, weights


def build():
    return MaskedDot()
