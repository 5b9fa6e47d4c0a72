"""Parts from outside of attnlab: what they compute is known, but not how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.tasks.symbols.operations import Array


def run(module: Callable[..., Tensor], *arrays: Array) -> Tensor:
    """What a module from outside computes of arrays, in the type and the place of its weights."""
    like = torch.empty(0)
    if isinstance(module, nn.Module):
        like = next(module.parameters(), like)
    return module(*(torch.as_tensor(array).to(like) for array in arrays))


def part_of(module: Any) -> str:
    return type(module).__name__
