# says: energy
import torch


def energy(query, keys, W_a):
    turned = keys.reshape(keys.shape[0], keys.shape[2], keys.shape[1])
    return torch.bmm(query @ W_a, turned)
