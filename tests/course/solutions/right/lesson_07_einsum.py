import torch


def context(F, alpha):
    return torch.einsum("dn,n->d", F, alpha)


def bilinear_scores(F, V, s):
    return torch.einsum("dn,dk,k->n", F, V, s)


def mlp_scores(F, s, v, W, V):
    return torch.matmul(v, torch.tanh(torch.mm(W, F) + torch.mv(V, s).view(-1, 1)))
