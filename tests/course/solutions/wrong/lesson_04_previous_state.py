# says: the query is the state one step before
import torch
from torch.nn.functional import linear


def luong_step(states, t, encoder_states, mask, W_c, b_c, W_y, b_y):
    scores = dot_scores(states[:, t - 1], encoder_states)
    alpha = scores.masked_fill(~mask, -torch.inf).softmax(1)
    a = torch.einsum("bs,bsh->bh", alpha, encoder_states)
    s_tilde = torch.tanh(linear(torch.cat([a, states[:, t]], 1), W_c, b_c))
    return linear(s_tilde, W_y, b_y).softmax(1)
