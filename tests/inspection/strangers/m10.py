import torch
import torch.nn as nn
import torch.nn.functional as F


class ConcatAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super(ConcatAttention, self).__init__()
        self.attn = nn.Linear(d_q + d_k, d_hidden)
        self.v = nn.Parameter(torch.empty(d_hidden))
        nn.init.normal_(self.v, mean=0, std=d_hidden**-0.5)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        T, S = query.shape[1], keys.shape[1]
        q = query.unsqueeze(2).expand(-1, -1, S, -1)
        k = keys.unsqueeze(1).expand(-1, T, -1, -1)
        energy = torch.tanh(self.attn(torch.cat((q, k), dim=3))) @ self.v
        energy = energy.masked_fill(~mask[:, None, :], float("-inf"))
        return torch.bmm(F.softmax(energy, dim=2), values)


def build():
    return ConcatAttention(16, 16, 16)
