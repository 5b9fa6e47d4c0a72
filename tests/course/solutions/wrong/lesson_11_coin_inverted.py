# says: the coin is turned around
import torch


def next_words(reference, logits, forced):
    return torch.where(forced, logits.argmax(1), reference)
