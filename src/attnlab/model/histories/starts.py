"""Weights before the first step."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.model.attention.memory import Memory


def no_weights(memory: Memory) -> Tensor:
    """Zeros (B, S): nothing was seen yet."""
    dtype = torch.promote_types(memory.summary.dtype, torch.float32)
    return torch.zeros(memory.positions.shape, dtype=dtype, device=memory.positions.device)


def at_first_token(memory: Memory) -> Tensor:
    """(B, S): 1 at the first token of each source, wherever pads stand, and 0 elsewhere."""
    return (memory.positions == 0).to(no_weights(memory).dtype)
