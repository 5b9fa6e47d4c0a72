# says: on the other side
import numpy as np


def pad(sentences, symbol, side):
    length = max(map(len, sentences))
    tokens = np.full((len(sentences), length), symbol)
    mask = np.zeros(tokens.shape, bool)
    for row, sentence in enumerate(sentences):
        place = slice(-len(sentence), None) if side == "post" else slice(len(sentence))
        tokens[row, place], mask[row, place] = sentence, True
    return tokens, mask
