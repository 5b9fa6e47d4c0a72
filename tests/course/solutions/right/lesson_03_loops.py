import math


def attention_weights(scores, mask):
    weights = []
    for row, real in zip(scores, mask, strict=True):
        shares = [math.exp(score) if seen else 0.0 for score, seen in zip(row, real, strict=True)]
        total = sum(shares)
        weights.append([share / total for share in shares])
    return weights


def attention(query, keys, values, mask):
    scores = []
    for q, sentence in zip(query, keys, strict=True):
        scores.append(
            [sum(float(a) * float(b) for a, b in zip(q, k, strict=True)) for k in sentence]
        )
    weights = attention_weights(scores, mask)
    contexts = []
    for row, sentence in zip(weights, values, strict=True):
        context = [0.0] * len(sentence[0])
        for weight, value in zip(row, sentence, strict=True):
            for place, number in enumerate(value):
                context[place] += weight * float(number)
        contexts.append(context)
    return contexts, weights
