import numpy as np


def dot_scores(state, encoder_states):
    return np.einsum("bh,bsh->bs", state, encoder_states)


def luong_step(states, t, encoder_states, mask, W_c, b_c, W_y, b_y):
    s = states[:, t]
    e = np.where(mask, dot_scores(s, encoder_states), -np.inf)
    alpha = np.exp(e - e.max(1, keepdims=True))
    alpha = alpha / alpha.sum(1, keepdims=True)
    a = np.einsum("bs,bsh->bh", alpha, encoder_states)
    s_tilde = np.tanh(np.concatenate([a, s], axis=1) @ W_c.T + b_c)
    y = np.exp(s_tilde @ W_y.T + b_y)
    return y / y.sum(1, keepdims=True)
