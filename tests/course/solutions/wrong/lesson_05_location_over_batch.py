# says: over the sentences of the batch
import torch


def location(query, W_a, mask):
    return (query @ W_a.T).masked_fill(~mask, -torch.inf).softmax(0)
