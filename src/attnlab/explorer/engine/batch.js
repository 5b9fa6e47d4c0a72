// The special tokens, as in attnlab/batch.py.

export const [PAD, UNK, BOS, EOS] = [0, 1, 2, 3];
