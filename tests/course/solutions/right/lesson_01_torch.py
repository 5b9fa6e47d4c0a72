import torch


def context_vector(states, mask):
    last = mask.long().sum(1) - 1
    index = last.view(-1, 1, 1).expand(-1, 1, states.size(2))
    return states.gather(1, index).squeeze(1)


def next_word(logits):
    probabilities = torch.softmax(logits, dim=-1)
    return probabilities, probabilities.argmax(-1)
