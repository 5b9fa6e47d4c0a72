"""Move the pads of a batch to the other side, and back."""

from __future__ import annotations

import torch
from torch import Tensor


def pads_last(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that puts real tokens first and keeps their own order."""
    return (~mask).long().argsort(dim=1, stable=True)


def reorder(x: Tensor, order: Tensor) -> Tensor:
    """x (B, S, ...) with the positions of each row taken in `order` (B, S)."""
    index = order.view(*order.shape, *[1] * (x.dim() - 2)).expand(-1, -1, *x.shape[2:])
    return x.gather(1, index)


def inverse(order: Tensor) -> Tensor:
    """The order that undoes `order`."""
    return order.argsort(dim=1)


def flip_real(mask: Tensor) -> Tensor:
    """The order of positions, (B, S), that turns the real tokens of each row around; they must come first in it."""
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)
