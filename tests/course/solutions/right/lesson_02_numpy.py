import numpy as np


def both_directions(forward, backward):
    return np.concatenate((forward, np.flip(backward, axis=1)), axis=-1)
