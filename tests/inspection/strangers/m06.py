import torch
from torch import nn


class LogSpaceAttention(nn.Module):
    def __init__(self, d: int = 16, rank: int = 8):
        super().__init__()
        self.left = nn.Linear(d, rank, bias=False)
        self.right = nn.Linear(d, rank, bias=False)

    def forward(self, query, keys, values, mask):
        # query (B, T, D)
        scores = torch.bmm(self.left(query), self.right(keys).transpose(1, 2))
        log_mask = mask.to(scores.dtype).log().unsqueeze(1)  # 0 or -inf
        log_w = (scores + log_mask).log_softmax(dim=2)
        w = log_w.exp()
        return w.bmm(values), w


def build():
    return LogSpaceAttention()
