import torch.nn.functional as F
from torch import nn


class FlashCrossAttention(nn.Module):
    def __init__(self, embed=16, heads=2, dropout=0.2):
        super().__init__()
        self.heads = heads
        self.attn_dropout = dropout
        self.q_proj = nn.Linear(embed, embed, bias=False)
        self.k_proj = nn.Linear(embed, embed, bias=False)
        self.v_proj = nn.Linear(embed, embed, bias=False)
        self.out_proj = nn.Linear(embed, embed)

    def shape(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        out = F.scaled_dot_product_attention(
            self.shape(self.q_proj(query)),
            self.shape(self.k_proj(keys)),
            self.shape(self.v_proj(values)),
            attn_mask=mask[:, None, None, :],
            dropout_p=self.attn_dropout,
        )
        return self.out_proj(out.transpose(1, 2).flatten(2))


def build():
    return FlashCrossAttention()
