# says: depends on the length of the sentence
import torch


def scaled_dot(query, keys):
    return torch.einsum("bd,bsd->bs", query, keys) / keys.shape[1] ** 0.5
