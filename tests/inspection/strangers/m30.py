import torch
import torch.nn as nn


class EinsumMHA(nn.Module):
    """Several heads with named axes: b batch, t target, s source, h head, k numbers."""

    def __init__(self, d=16, h=2, k=8, v=16):
        super().__init__()
        self.wq = nn.Parameter(torch.randn(d, h, k) / d**0.5)
        self.wk = nn.Parameter(torch.randn(d, h, k) / d**0.5)
        self.wv = nn.Parameter(torch.randn(v, h, k) / v**0.5)
        self.wo = nn.Parameter(torch.randn(h, k, v) / (h * k) ** 0.5)

    def forward(self, query, keys, values, mask):
        # query: b t d
        q = torch.einsum("btd,dhk->bthk", query, self.wq)
        k = torch.einsum("bsd,dhk->bshk", keys, self.wk)
        v = torch.einsum("bsd,dhk->bshk", values, self.wv)
        bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, torch.finfo(q.dtype).min)
        logits = torch.einsum("bthk,bshk->bhts", q / q.shape[-1] ** 0.5, k) + bias[:, None, None, :]
        p = logits.softmax(dim=-1)
        o = torch.einsum("bhts,bshk->bthk", p, v)
        return torch.einsum("bthk,hkv->btv", o, self.wo)


def build():
    return EinsumMHA()
