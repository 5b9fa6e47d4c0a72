import numpy as np


def softmax(z):
    z = np.exp(z - z.max(1, keepdims=True))
    return z / z.sum(1, keepdims=True)


def feed_word(logits, embeddings):
    return embeddings[logits.argmax(1)]


def feed_softmax(logits, embeddings):
    return np.hstack([feed_word(logits, embeddings), softmax(logits)])


def feed_attentional(logits, embeddings, attentional):
    return np.hstack([feed_word(logits, embeddings), attentional])
