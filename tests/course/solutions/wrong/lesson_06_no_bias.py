# says: the bias of the cell is missing
import torch


def bahdanau_step(state, embedding, encoder_states, mask, W_a, W_b, W_c, W, U, b):
    e = torch.tanh((state @ W_b.T)[:, None] + encoder_states @ W_c.T) @ W_a
    a = e.masked_fill(~mask, -torch.inf).softmax(1)
    c = torch.einsum("bs,bsd->bd", a, encoder_states)
    return torch.tanh(torch.cat([embedding, c], 1) @ W.T + state @ U.T), c
