# says: these are weights, behind the softmax
import torch


def energies(s, H, W_a, W_b, W_c):
    return (W_a @ torch.tanh((W_b @ s)[:, None] + W_c @ H)).softmax(0)
