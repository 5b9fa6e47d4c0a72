# says: the mean of the states
import numpy as np


def context_vector(states, mask):
    return np.stack([sentence[real].mean(0) for sentence, real in zip(states, mask, strict=True)])
