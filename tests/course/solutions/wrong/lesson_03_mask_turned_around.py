# says: the mask is turned around
import torch


def attention_weights(scores, mask):
    return scores.masked_fill(mask, -torch.inf).softmax(-1)
