import torch


def forced_inputs(targets, bos):
    return torch.cat([targets.new_full((targets.shape[0], 1), bos), targets[:, :-1]], dim=1)


def next_words(reference, logits, forced):
    words = logits.argmax(1)
    words[forced] = reference[forced]
    return words
