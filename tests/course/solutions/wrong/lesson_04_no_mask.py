# says: pads get weight
import torch


def luong_step(states, t, encoder_states, mask, W_c, b_c, W_y, b_y):
    s = states[:, t]
    w = torch.einsum("bh,bsh->bs", s, encoder_states).softmax(1)
    a = torch.einsum("bs,bsh->bh", w, encoder_states)
    return (torch.tanh(torch.cat([a, s], 1) @ W_c.T + b_c) @ W_y.T + b_y).softmax(1)
