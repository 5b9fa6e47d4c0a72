import torch

import attnlab


def attention_weights(scores, mask):
    weights = torch.zeros_like(scores)
    for row in range(len(scores)):
        weights[row, mask[row]] = scores[row, mask[row]].softmax(0)
    return weights


def attention(query, keys, values, mask):
    layer = attnlab.Attention("dot", query_size=query.shape[1])
    return layer(query, keys, values, mask)
