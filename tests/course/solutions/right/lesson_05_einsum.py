import torch


def scaled_dot(query, keys):
    return torch.einsum("bd,bsd->bs", query, keys) * query.shape[-1] ** -0.5


def general(query, keys, W):
    return torch.einsum("bh,hd,bsd->bs", query, W, keys)


def concat(query, keys, W_a, W_b):
    B, S, _ = keys.shape
    x = torch.cat([query[:, None].expand(B, S, query.shape[1]), keys], dim=2)
    return torch.einsum("a,bsa->bs", W_a, torch.tanh(torch.einsum("ac,bsc->bsa", W_b, x)))


def location(query, W_a, mask):
    z = torch.einsum("sh,bh->bs", W_a, query)
    return torch.softmax(z.where(mask, torch.tensor(-float("inf"))), dim=1)
