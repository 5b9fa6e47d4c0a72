"""Recurrences in single precision on a GPU, where autocast would run them in float16."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

ResultT = TypeVar("ResultT")

# Whatever type autocast was asked for, torch casts what cuDNN's recurrences read to float16 (ATen, AutocastRNN.cpp).
# Gradients in float16 need a scaler, and bfloat16 training has none.
HALVES_RECURRENCES = ("cuda",)


def in_single_precision(recurrence: Callable[..., ResultT], x: Tensor, *more: Tensor | None) -> ResultT:
    """recurrence(x, *more); under autocast on a GPU, outside of autocast and with inputs in float32."""
    kind = x.device.type
    if kind not in HALVES_RECURRENCES or not torch.is_autocast_enabled(kind):
        return recurrence(x, *more)
    with torch.autocast(kind, enabled=False):
        return recurrence(_widened(x), *(None if tensor is None else _widened(tensor) for tensor in more))


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
