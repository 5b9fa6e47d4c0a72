# says: error at
import torch


def energy(query, keys, W_a):
    return torch.bmm(query @ W_a, keys)
