import torch


def context(F, alpha):
    return (F * alpha).sum(1)


def bilinear_scores(F, V, s):
    return torch.stack([h @ V @ s for h in F.T])


def mlp_scores(F, s, v, W, V):
    return torch.stack([v @ torch.tanh(W @ h + V @ s) for h in F.unbind(1)])
