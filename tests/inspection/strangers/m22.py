import torch
import torch.nn as nn
import torch.nn.functional as F


class FoldedHeads(nn.Module):
    def __init__(self, dim=16, heads=2, p_drop=0.2):
        super().__init__()
        self.heads = heads
        self.p_drop = p_drop
        self.q = nn.Linear(dim, dim, bias=False)
        self.kv = nn.ModuleList([nn.Linear(dim, dim, bias=False) for _ in range(2)])

    def fold(self, x):
        B, L, D = x.shape
        x = x.reshape(B, L, self.heads, D // self.heads).permute(0, 2, 1, 3)
        return x.reshape(B * self.heads, L, D // self.heads)

    def forward(self, query, keys, values, mask):
        # query: B, T, D
        B, T, D = query.shape
        q, k, v = (
            self.fold(self.q(query)),
            self.fold(self.kv[0](keys)),
            self.fold(self.kv[1](values)),
        )
        bias = torch.zeros(mask.shape, dtype=q.dtype, device=q.device)
        bias = bias.masked_fill(~mask, torch.finfo(q.dtype).min)
        bias = bias.repeat_interleave(self.heads, dim=0).unsqueeze(1).expand(-1, T, -1)
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), beta=1.0, alpha=q.size(-1) ** -0.5)
        probs = F.dropout(torch.softmax(scores, dim=-1), p=self.p_drop, training=self.training)
        out = torch.bmm(probs, v).view(B, self.heads, T, -1)
        return out.permute(0, 2, 1, 3).reshape(B, T, D)


def build():
    return FoldedHeads()
