# says: the relu
import torch


def probability(context, W3, b3, w4, b4):
    return torch.sigmoid((context @ W3 + b3) @ w4 + b4)
