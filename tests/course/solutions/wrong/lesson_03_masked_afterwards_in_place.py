# says: over its real tokens
import torch


def attention_weights(scores, mask):
    w = torch.softmax(scores, 1)
    w[~mask] = 0
    return w
