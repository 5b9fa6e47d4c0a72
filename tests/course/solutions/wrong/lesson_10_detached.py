# says: no gradient flows from the result to logits
import torch


def feed_softmax(logits, embeddings):
    return torch.cat([embeddings[logits.argmax(1)], logits.softmax(1).detach()], 1)
