# says: one step before the last token
import numpy as np


def context_vector(states, mask):
    return states[np.arange(len(states)), mask.sum(1) - 2]
