# says: not in the order [embedding; s̃]
import torch


def feed_attentional(logits, embeddings, attentional):
    return torch.cat([attentional, embeddings[logits.argmax(1)]], 1)
