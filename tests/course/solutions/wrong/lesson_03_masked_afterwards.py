# says: over its real tokens
import torch


def attention_weights(scores, mask):
    return torch.softmax(scores, dim=1) * mask
