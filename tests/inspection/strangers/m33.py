import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CosineAttention(nn.Module):
    def __init__(self, init_temperature=0.2):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / init_temperature)))

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        q = F.normalize(query, dim=-1, eps=1e-6)
        k = F.normalize(keys, dim=-1, eps=1e-6)
        logits = self.logit_scale.exp() * torch.einsum("btd,bsd->bts", q, k)
        logits = logits.masked_fill(mask.logical_not().unsqueeze(1), float("-inf"))
        w = F.softmax(logits, dim=-1)
        return torch.einsum("bts,bsv->btv", w, values), w


def build():
    return CosineAttention()
