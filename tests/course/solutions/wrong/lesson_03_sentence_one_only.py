# says: sentence 2
import torch


def attention_weights(scores, mask):
    real = int(mask[0].sum())
    weights = torch.zeros_like(scores)
    weights[:, :real] = scores[:, :real].softmax(1)
    return weights
