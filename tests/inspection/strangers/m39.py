import torch
import torch.nn as nn


class PredictiveAlignment(nn.Module):
    """Predicts a source position p_t and attends in a window around it."""

    def __init__(self, dim=16, sigma=2.0):
        super().__init__()
        self.W_p = nn.Linear(dim, dim)
        self.v_p = nn.Linear(dim, 1)
        self.sigma = sigma

    def forward(self, query, keys, values, mask):
        # query: (B, D)
        lengths = mask.sum(dim=1, keepdim=True).to(keys.dtype)
        p_t = lengths * torch.sigmoid(self.v_p(torch.tanh(self.W_p(query))))
        pos = torch.arange(keys.size(1), device=keys.device, dtype=keys.dtype)
        logits = -((pos.unsqueeze(0) - p_t) ** 2) / (2 * self.sigma**2)
        logits = logits.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(logits, dim=1)
        context = torch.bmm(weights.unsqueeze(1), values).squeeze(1)
        return context, weights


def build():
    return PredictiveAlignment()
