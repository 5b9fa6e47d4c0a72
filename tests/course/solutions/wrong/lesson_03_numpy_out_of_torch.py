# says: no gradient flows from the result to scores
import numpy as np
import torch


def attention_weights(scores, mask):
    s = scores.detach().numpy().copy()
    s[~mask.numpy()] = -np.inf
    e = np.exp(s - s.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)
