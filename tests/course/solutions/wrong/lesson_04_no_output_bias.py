# says: the bias of the output layer is missing
import torch


def luong_step(states, t, encoder_states, mask, W_c, b_c, W_y, b_y):
    s = states[:, t]
    w = torch.einsum("bh,bsh->bs", s, encoder_states).masked_fill(~mask, -torch.inf).softmax(1)
    a = torch.einsum("bs,bsh->bh", w, encoder_states)
    return (torch.tanh(torch.cat([a, s], 1) @ W_c.T + b_c) @ W_y.T).softmax(1)
