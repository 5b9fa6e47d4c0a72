def pad(sentences, symbol, side):
    n = max(map(len, sentences))
    tokens, mask = [], []
    for s in sentences:
        gap = n - len(s)
        if side == "pre":
            tokens.append([symbol] * gap + list(s))
            mask.append([False] * gap + [True] * len(s))
        else:
            tokens.append(list(s) + [symbol] * gap)
            mask.append([True] * len(s) + [False] * gap)
    return tokens, mask
