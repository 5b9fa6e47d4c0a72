import torch
import torch.nn as nn


class FlatAdditive(nn.Module):
    def __init__(self, q_dim=16, k_dim=16, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(q_dim + k_dim, hidden)
        self.fc2 = nn.Linear(hidden, 1, bias=False)

    def forward(self, query, keys, values, mask):
        # query: (B, D)
        bsz, src_len, dim = keys.shape
        q = query.repeat(src_len, 1)
        k = keys.reshape(bsz * src_len, dim)
        e = self.fc2(torch.tanh(self.fc1(torch.cat([q, k], dim=1))))
        e = e.view(bsz, src_len).masked_fill(~mask, float("-inf"))
        a = torch.softmax(e, dim=1)
        return a, torch.bmm(a.unsqueeze(1), values).squeeze(1)


def build():
    return FlatAdditive()
