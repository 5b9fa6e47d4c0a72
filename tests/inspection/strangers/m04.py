import torch
from torch import nn


class TorchMHA(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.mha = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

    def forward(self, query, keys, values, mask):
        # query: (B, T, D); torch wants True where a key is to be ignored
        return self.mha(query, keys, values, key_padding_mask=torch.logical_not(mask))


def build():
    return TorchMHA(16, 2)
