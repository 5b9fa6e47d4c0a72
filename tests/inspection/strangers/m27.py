import torch
import torch.nn.functional as F
from torch import nn


class MHA(nn.Module):
    def __init__(self, n_state=16, n_head=2):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        q = self.query(query)
        k = self.key(keys)
        v = self.value(keys)
        q, k, v = (x.view(*x.shape[:2], self.n_head, -1).permute(0, 2, 1, 3) for x in (q, k, v))
        qk = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        qk = qk.masked_fill(~mask[:, None, None, :], float("-inf"))
        w = F.softmax(qk, dim=-1)
        wv = (w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)
        return self.out(wv), w


def build():
    return MHA()
