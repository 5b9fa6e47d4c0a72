import torch
import torch.nn as nn


class BilinearAttention(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.score = nn.Bilinear(d, d, 1, bias=False)

    def forward(self, query, keys, values, mask):
        # query: [B, D]
        q = query.unsqueeze(1).expand_as(keys).contiguous()
        logits = self.score(q, keys).squeeze(-1)
        dtype = logits.dtype
        if dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        weights = logits.masked_fill(~mask, -1e9).softmax(dim=-1).to(dtype)
        context = torch.matmul(weights[:, None, :], values).squeeze(1)
        return context, weights


def build():
    return BilinearAttention()
