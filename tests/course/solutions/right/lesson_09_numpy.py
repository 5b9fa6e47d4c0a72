import numpy as np


def pad(sentences, symbol, side):
    length = max(map(len, sentences))
    rows, masks = [], []
    for sentence in sentences:
        gap = length - len(sentence)
        if side == "pre":
            rows.append([symbol] * gap + sentence)
            masks.append([False] * gap + [True] * len(sentence))
        else:
            rows.append(sentence + [symbol] * gap)
            masks.append([True] * len(sentence) + [False] * gap)
    return np.array(rows), np.array(masks)
