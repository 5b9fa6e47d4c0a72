# says: where the reference has
import torch


def next_words(reference, logits, forced):
    return torch.where(torch.rand(len(reference)) < 0.5, reference, logits.argmax(1))
