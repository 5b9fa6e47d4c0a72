# says: not between -1 and 1
import torch
from torch.nn.functional import linear


def luong_step(states, t, encoder_states, mask, W_c, b_c, W_y, b_y):
    s = states[:, t]
    alpha = dot_scores(s, encoder_states).masked_fill(~mask, -torch.inf).softmax(1)
    a = torch.einsum("bs,bsh->bh", alpha, encoder_states)
    return linear(linear(torch.cat([a, s], 1), W_c, b_c), W_y, b_y).softmax(1)
