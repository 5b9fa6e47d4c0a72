import torch


def both_directions(forward, backward):
    return torch.cat([forward, backward.flip(1)], dim=2)
