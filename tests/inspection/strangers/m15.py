import torch
import torch.nn as nn


class ConcatScore(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.score = nn.Linear(2 * dim, 1, bias=False)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        T, S = query.size(1), keys.size(1)
        pairs = torch.cat(
            [
                query.unsqueeze(2).expand(-1, -1, S, -1),
                keys.unsqueeze(1).expand(-1, T, -1, -1),
            ],
            dim=-1,
        )
        scores = self.score(pairs).squeeze(-1)
        scores = scores.masked_fill(~mask.unsqueeze(1), float("-inf"))
        weights = scores.softmax(dim=-1)
        return weights @ values, weights


def build():
    return ConcatScore()
