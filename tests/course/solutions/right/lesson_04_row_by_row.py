import numpy as np


def soft(z):
    z = np.exp(z - z.max())
    return z / z.sum()


def dot_scores(state, encoder_states):
    return np.array([H @ s for s, H in zip(state, encoder_states, strict=True)])


def luong_step(states, t, encoder_states, mask, W_c, b_c, W_y, b_y):
    rows = []
    for b in range(len(states)):
        s = states[b][t]
        H = encoder_states[b][mask[b]]
        alpha = soft(H @ s)
        a = alpha @ H
        v = np.concatenate([a, s])
        rows.append(soft(W_y @ np.tanh(W_c @ v + b_c) + b_y))
    return np.stack(rows)
