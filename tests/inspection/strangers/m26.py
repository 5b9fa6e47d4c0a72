import torch
import torch.nn as nn


class MLPAttention(nn.Module):
    def __init__(self, dim=16, hidden=20):
        super().__init__()
        self.scorer = nn.Sequential(
            nn.Linear(3 * dim, hidden),
            nn.GELU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        B, T, D = query.shape
        S = keys.shape[1]
        q = query[:, :, None, :].expand(B, T, S, D)
        k = keys[:, None, :, :].expand(B, T, S, D)
        scores = self.scorer(torch.cat([q, k, q * k], dim=-1))[..., 0]
        scores = scores + torch.where(mask, 0.0, float("-inf")).to(scores.dtype)[:, None, :]
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(weights, values), weights


def build():
    return MLPAttention()
