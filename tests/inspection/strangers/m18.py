import torch.nn.functional as F
from torch import nn


class SDPAttention(nn.Module):
    def __init__(self, dim=16, num_heads=4, dropout=0.1):
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        q, k, v = (
            f(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for f, x in ((self.to_q, query), (self.to_k, keys), (self.to_v, values))
        )
        y = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask[:, None, None, :],
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.proj(y.transpose(1, 2).flatten(2))


def build():
    return SDPAttention()
