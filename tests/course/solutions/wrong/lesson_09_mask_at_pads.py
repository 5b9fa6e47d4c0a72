# says: True at pads
import numpy as np


def pad(sentences, symbol, side):
    n = max(map(len, sentences))
    tokens = np.array(
        [
            [symbol] * (n - len(s)) + s if side == "pre" else s + [symbol] * (n - len(s))
            for s in sentences
        ]
    )
    return tokens, np.ones_like(tokens, dtype=bool)
