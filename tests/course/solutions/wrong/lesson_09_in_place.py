# says: it changes its input sentences
import numpy as np


def pad(sentences, symbol, side):
    length = max(map(len, sentences))
    mask = []
    for sentence in sentences:
        real, gap = len(sentence), length - len(sentence)
        if side == "pre":
            sentence[:0] = [symbol] * gap
            mask.append([False] * gap + [True] * real)
        else:
            sentence += [symbol] * gap
            mask.append([True] * real + [False] * gap)
    return np.array(sentences), np.array(mask)
