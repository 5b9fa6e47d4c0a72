# says: it changes its input scores
import torch


def attention_weights(scores, mask):
    scores[~mask] = -torch.inf
    return scores.softmax(1)
