from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model=16, nhead=4):
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D)
        context, weights = self.multihead_attn(
            query, keys, values, key_padding_mask=mask, need_weights=True
        )
        return context, weights


def build():
    return CrossAttention()
