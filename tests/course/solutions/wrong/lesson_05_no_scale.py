# says: too large by one factor
import torch


def scaled_dot(query, keys):
    return torch.einsum("bd,bsd->bs", query, keys)
