import torch
from torch import nn


class BiasMaskedAttention(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.register_buffer("neg", torch.tensor(-1e9), persistent=False)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        q, k = self.to_q(query), self.to_k(keys)
        scores = q @ k.transpose(1, 2) * k.size(-1) ** -0.5
        scores = scores + (1.0 - mask.to(scores.dtype)).unsqueeze(1) * self.neg
        weights = scores.softmax(-1)
        return weights @ values, weights


def build():
    return BiasMaskedAttention()
