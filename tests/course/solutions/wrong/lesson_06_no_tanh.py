# says: there is no tanh
def energies(s, H, W_a, W_b, W_c):
    return W_a @ ((W_b @ s)[:, None] + W_c @ H)
