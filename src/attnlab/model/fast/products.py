"""Products of matrices by oneDNN, through the operators that torch's own compiler uses."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b as torch's `linear`, without a gradient.

    x (M, I), weight (O, I), bias (O,) -> (M, O).

    In single precision on a CPU by oneDNN, which torch itself asks in bfloat16 only: its own
    choice, MKL, keeps to a slower path on processors that are not Intel's. The sums are the same
    but for the order of their terms.
    """
    if x.device.type == "cpu" and x.dtype == torch.float32 and has_onednn() and x.numel() > 0:
        if not (weight.is_contiguous() or weight.t().is_contiguous()):
            # With a slice of columns oneDNN takes a thousand times as long
            weight = weight.contiguous()
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return linear(x, weight, bias)


def has_onednn(dtype: torch.dtype = torch.float32) -> bool:
    """Whether torch comes with oneDNN, its operators, and support for the type.

    The operators are those by which torch's compiler reaches oneDNN.
    """
    if not (
        torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    ):
        return False
    return dtype is torch.float32 or (
        dtype is torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
