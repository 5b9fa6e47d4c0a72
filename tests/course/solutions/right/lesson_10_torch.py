import torch
from torch.nn import functional as F


def feed_word(logits, embeddings):
    one_hot = F.one_hot(logits.argmax(-1), logits.shape[-1]).to(embeddings.dtype)
    return one_hot @ embeddings


def feed_softmax(logits, embeddings):
    return torch.cat([feed_word(logits, embeddings), logits.softmax(-1)], -1)


def feed_attentional(logits, embeddings, attentional):
    return torch.cat([F.embedding(logits.argmax(-1), embeddings), attentional], -1)
