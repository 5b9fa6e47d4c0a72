# says: made at different words
import numpy as np


def both_directions(forward, backward):
    return np.concatenate([forward, backward], axis=2)
