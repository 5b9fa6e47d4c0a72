import torch
from torch import nn
from torch.nn import functional as F


class Reader(nn.Module):
    def __init__(self, d=16, temperature=3.0):
        super().__init__()
        self.ln = nn.LayerNorm(d)
        self.address = nn.Linear(d, d, bias=False)
        self.temperature = temperature

    def forward(self, query, keys, values, mask):
        # query: (B, D)
        q = self.address(self.ln(query)).unsqueeze(1)
        bias = torch.zeros(mask.shape, dtype=q.dtype, device=q.device)
        bias = bias.masked_fill(~mask, float("-inf")).unsqueeze(1)
        read = F.scaled_dot_product_attention(
            q, keys, values, attn_mask=bias, scale=1.0 / self.temperature
        )
        return read.squeeze(1)


def build():
    return Reader()
