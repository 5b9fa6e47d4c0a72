import torch


def attention_weights(scores, mask):
    logz = torch.logsumexp(scores.masked_fill(~mask, -torch.inf), 1, keepdim=True)
    return torch.exp(scores - logz) * mask


def attention(query, keys, values, mask):
    c = torch.nn.functional.scaled_dot_product_attention(
        query[:, None], keys, values, attn_mask=mask[:, None], scale=1.0
    )
    w = attention_weights((query[:, None] @ keys.mT)[:, 0], mask)
    return c[:, 0], w
