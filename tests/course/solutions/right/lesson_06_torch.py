import torch
from torch.nn.functional import linear


def energies(s, H, W_a, W_b, W_c):
    return torch.tanh((W_b @ s)[:, None] + W_c @ H).T @ W_a


def bahdanau_step(state, embedding, encoder_states, mask, W_a, W_b, W_c, W, U, b):
    inner = torch.tanh(linear(state, W_b)[:, None] + linear(encoder_states, W_c))
    alpha = (inner @ W_a).masked_fill(~mask, float("-inf")).softmax(1)
    context = torch.bmm(alpha[:, None], encoder_states)[:, 0]
    new_state = torch.tanh(linear(torch.cat([embedding, context], 1), W) + linear(state, U) + b)
    return new_state, context
