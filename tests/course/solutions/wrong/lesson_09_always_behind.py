# says: the pads stand always behind
import numpy as np


def pad(sentences, symbol, side):
    n = max(map(len, sentences))
    tokens = np.array([s + [symbol] * (n - len(s)) for s in sentences])
    mask = np.array([[True] * len(s) + [False] * (n - len(s)) for s in sentences])
    return tokens, mask
