import math

import torch
from torch import nn


def repeat_kv(x, n_rep):
    b, h, s, d = x.shape
    if n_rep == 1:
        return x
    return x[:, :, None].expand(b, h, n_rep, s, d).reshape(b, h * n_rep, s, d)


class GroupedQueryAttention(nn.Module):
    def __init__(self, hidden=16, n_heads=4, n_kv_heads=2):
        super().__init__()
        self.n_heads, self.n_kv = n_heads, n_kv_heads
        self.head_dim = hidden // n_heads
        self.q_proj = nn.Linear(hidden, n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden, n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden, n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * self.head_dim, hidden, bias=False)

    def forward(self, query, keys, values, mask):
        # query: [bsz, q_len, hidden]
        bsz, q_len, _ = query.size()
        kv_len = keys.size(1)
        q = self.q_proj(query).view(bsz, q_len, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(keys).view(bsz, kv_len, self.n_kv, self.head_dim).transpose(1, 2)
        v = self.v_proj(values).view(bsz, kv_len, self.n_kv, self.head_dim).transpose(1, 2)
        k = repeat_kv(k, self.n_heads // self.n_kv)
        v = repeat_kv(v, self.n_heads // self.n_kv)

        attn_weights = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
        causal = torch.zeros(bsz, 1, 1, kv_len, dtype=q.dtype, device=q.device)
        causal = causal.masked_fill(~mask[:, None, None, :], torch.finfo(q.dtype).min)
        attn_weights = attn_weights + causal
        attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32).to(q.dtype)
        out = torch.matmul(attn_weights, v).transpose(1, 2).contiguous()
        return self.o_proj(out.reshape(bsz, q_len, -1))


def build():
    return GroupedQueryAttention()
