# says: pads get weight
import torch
from torch.nn.functional import linear


def bahdanau_step(state, embedding, encoder_states, mask, W_a, W_b, W_c, W, U, b):
    inner = torch.tanh(linear(state, W_b)[:, None] + linear(encoder_states, W_c))
    alpha = (inner @ W_a).softmax(1)
    context = torch.einsum("bs,bsd->bd", alpha, encoder_states)
    x = torch.cat([embedding, context], 1)
    return torch.tanh(linear(x, W) + linear(state, U) + b), context
