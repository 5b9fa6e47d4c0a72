import numpy as np


def context_vector(states, mask):
    return np.stack([sentence[real][-1] for sentence, real in zip(states, mask, strict=True)])


def next_word(logits):
    shares = np.exp(logits)
    return shares / shares.sum(axis=1, keepdims=True), np.argmax(logits, axis=1)
