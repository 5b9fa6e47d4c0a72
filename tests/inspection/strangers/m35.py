import torch
import torch.nn as nn
import torch.nn.functional as F


class LuongGeneral(nn.Module):
    def __init__(self, hidden_size=16):
        super().__init__()
        self.linear_in = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        scores = torch.bmm(self.linear_in(query), keys.transpose(1, 2))
        if mask is not None:
            scores.masked_fill(~mask.unsqueeze(1), float("-inf"))
        align = F.softmax(scores, dim=-1)
        return torch.bmm(align, values), align


def build():
    return LuongGeneral()
