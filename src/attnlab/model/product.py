"""The matrix product of a linear layer, where autograd is not watching."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b as torch's `linear`, without a gradient: x (M, I), weight (O, I), bias (O,) -> (M, O).

    In single precision on a CPU by oneDNN, which torch itself asks in bfloat16 only: its own choice, MKL, keeps to a
    slower path on processors that are not Intel's. The sums are the same but for the order of their terms.
    """
    if x.device.type == "cpu" and x.dtype == torch.float32 and has_onednn() and x.numel() > 0:
        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return found
    return linear(x, weight, bias)


def has_onednn() -> bool:
    """Whether torch comes with oneDNN and the operators by which its compiler reaches it."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
