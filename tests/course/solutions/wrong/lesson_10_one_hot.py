# says: one-hot, not the distribution
import torch


def feed_softmax(logits, embeddings):
    words = logits.argmax(1)
    certain = torch.nn.functional.one_hot(words, logits.shape[1]).to(logits.dtype)
    return torch.cat([embeddings[words], certain], 1)
