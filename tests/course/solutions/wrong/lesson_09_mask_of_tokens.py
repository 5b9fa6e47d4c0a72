# says: that has the id of the pad
import numpy as np


def pad(sentences, symbol, side):
    length = max(map(len, sentences))
    rows = []
    for sentence in sentences:
        gap = [symbol] * (length - len(sentence))
        rows.append(gap + sentence if side == "pre" else sentence + gap)
    tokens = np.array(rows)
    return tokens, tokens != symbol
