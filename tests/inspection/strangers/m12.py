import torch
import torch.nn as nn
import torch.nn.functional as F


class DotAttention(nn.Module):
    """Luong et al. (2015), score = h_t . h_s"""

    def forward(self, query, keys, values, mask):
        # query: (B, D)   keys: (B, S, D)   values: (B, S, V)   mask: (B, S)
        scores = torch.bmm(keys, query.unsqueeze(2)).squeeze(2)
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = F.softmax(scores, dim=1)
        context = torch.bmm(weights.unsqueeze(1), values).squeeze(1)
        return context, weights


def build():
    return DotAttention()
