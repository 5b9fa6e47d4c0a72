# says: over its real tokens
import numpy as np


def attention_weights(scores, mask):
    scores = np.where(mask, scores, 0)
    return scores / np.abs(scores).sum(1, keepdims=True)
