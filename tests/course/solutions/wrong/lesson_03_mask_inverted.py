# says: the mask is True at real tokens
import torch


def attention_weights(scores, mask):
    hidden = scores.masked_fill(mask, -1e9)
    return hidden.softmax(1)
