# says: no gradient flows from the result to scores
import torch


def attention_weights(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(1).tolist()
