# says: their scores are 0
import numpy as np


def attention_weights(scores, mask):
    scores = scores * mask
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)
