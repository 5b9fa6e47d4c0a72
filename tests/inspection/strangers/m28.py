import torch
import torch.nn as nn


class AdditiveAttention(nn.Module):
    def __init__(self, enc_dim=16, dec_dim=16, att_dim=16):
        super().__init__()
        self.encoder_att = nn.Linear(enc_dim, att_dim)
        self.decoder_att = nn.Linear(dec_dim, att_dim, bias=False)
        self.full_att = nn.Linear(att_dim, 1, bias=False)

    def forward(self, query, keys, values, mask):
        # query: (B, D)
        att = self.encoder_att(keys) + self.decoder_att(query).unsqueeze(1)
        energy = self.full_att(torch.tanh(att)).squeeze()
        energy[~mask] = float("-inf")
        alpha = torch.softmax(energy, dim=1)
        context = (values * alpha.unsqueeze(2)).sum(dim=1)
        return context, alpha


def build():
    return AdditiveAttention()
