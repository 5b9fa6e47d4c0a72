import numpy as np


def context(F, alpha):
    return F @ alpha


def bilinear_scores(F, V, s):
    return F.T @ (V @ s)


def mlp_scores(F, s, v, W, V):
    return v.T @ np.tanh(W @ F + (V @ s)[:, np.newaxis])
