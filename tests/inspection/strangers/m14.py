import torch
import torch.nn as nn


class Attn(nn.Module):
    def __init__(self, size=16):
        super(Attn, self).__init__()
        self.project = nn.Linear(size, size, bias=False)
        self.softmax = nn.Softmax()

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        energy = torch.bmm(self.project(query), keys.transpose(1, 2))
        energy = energy.masked_fill(~mask.unsqueeze(1), torch.finfo(energy.dtype).min)
        attention = self.softmax(energy)
        context = torch.bmm(attention, values)
        return context, attention


def build():
    return Attn()
