# says: words[2] is 6, where the reference has 2
import torch


def next_word(logits):
    return logits.softmax(1), logits.topk(2, 1).indices[:, 1]
