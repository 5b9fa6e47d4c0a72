# says: over the sentences of the batch
import torch


def attention_weights(scores, mask):
    weights = scores.masked_fill(~mask, -torch.inf).softmax(0)
    return torch.nan_to_num(weights)
