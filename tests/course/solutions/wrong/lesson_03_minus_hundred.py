# says: pads get weight in a sentence whose scores are very small
import torch


def attention_weights(scores, mask):
    return scores.masked_fill(~mask, -1e2).softmax(1)
