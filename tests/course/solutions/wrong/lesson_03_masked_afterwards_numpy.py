# says: over its real tokens
import numpy as np


def attention_weights(scores, mask):
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights = weights / weights.sum(1, keepdims=True)
    weights[~mask] = 0
    return weights
