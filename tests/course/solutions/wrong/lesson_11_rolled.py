# says: the last token of the sentence, not the start symbol
import numpy as np


def forced_inputs(targets, bos):
    return np.roll(targets, 1, axis=1)
