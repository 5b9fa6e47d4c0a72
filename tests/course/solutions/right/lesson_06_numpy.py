import numpy as np


def energies(s, H, W_a, W_b, W_c):
    return W_a @ np.tanh((W_b @ s).reshape(-1, 1) + W_c @ H)


def bahdanau_step(state, embedding, encoder_states, mask, W_a, W_b, W_c, W, U, b):
    scores = np.stack(
        [energies(s, h.T, W_a, W_b, W_c) for s, h in zip(state, encoder_states, strict=True)]
    )
    scores = np.where(mask, scores, -np.inf)
    alpha = np.exp(scores - scores.max(1, keepdims=True))
    alpha /= alpha.sum(1, keepdims=True)
    context = (alpha[:, :, None] * encoder_states).sum(1)
    x = np.concatenate([embedding, context], 1)
    return np.tanh(x @ W.T + state @ U.T + b), context
