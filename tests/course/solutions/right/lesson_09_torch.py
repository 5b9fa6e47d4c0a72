import torch
from torch.nn.utils.rnn import pad_sequence


def pad(sentences, symbol, side):
    rows = [torch.tensor(sentence) for sentence in sentences]
    ones = [torch.ones(len(sentence)) for sentence in sentences]
    if side == "pre":
        tokens = pad_sequence([row.flip(0) for row in rows], True, symbol).flip(1)
        return tokens, pad_sequence(ones, True, 0).flip(1) == 1
    return pad_sequence(rows, True, symbol), pad_sequence(ones, True, 0) == 1
