import torch
import torch.nn as nn


class AlignAttention(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.proj = nn.Linear(dim, dim, bias=False)
        self.scale = dim**-0.5

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        pad = ~mask.unsqueeze(-1)
        scores = torch.matmul(keys, self.proj(query).transpose(1, 2)) * self.scale
        scores = scores.masked_fill(pad, torch.finfo(scores.dtype).min)
        align = torch.softmax(scores, dim=-1).masked_fill(pad, 0.0)
        align = align.transpose(1, 2)
        return torch.matmul(align, values), align


def build():
    return AlignAttention()
